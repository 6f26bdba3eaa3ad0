/** Starts the portal. */

import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { createRoot } from 'react-dom/client';
import { keepPage } from './lib/offline';
import { startTheme } from './lib/theme';
import { client, router } from './router';
import './styles.css';
import { startLanguage, useLanguage } from './texts/language';

/** The whole portal, which is drawn anew when the reader chooses another language. */
function Portal() {
  return (
    <QueryClientProvider client={client}>
      <RouterProvider key={useLanguage()} router={router} />
    </QueryClientProvider>
  );
}

/** Wait until the files of the page have come or were lost. Chromium may tell of lost styles only after the scripts have begun. */
const loaded = (): Promise<unknown> =>
  document.readyState === 'complete' ? Promise.resolve() : new Promise((done) => addEventListener('load', done, { once: true }));

async function start(): Promise<void> {
  startTheme();
  await Promise.all([startLanguage(), loaded()]);
  // A page of which files did not come is about to be loaded anew (recover.js), with all of its address: a link signs in once.
  if (document.documentElement.hasAttribute('data-recovering')) return;
  keepPage();
  createRoot(document.getElementById('root')!).render(<Portal />);
}

void start();
