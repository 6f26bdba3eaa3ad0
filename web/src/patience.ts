/** Tests of components wait for what they expect as long as a busy machine may take, and no test fails before. */

if (typeof window !== 'undefined') {
  const { configure } = await import('@testing-library/react');
  configure({ asyncUtilTimeout: 30_000 });
}

export {};
