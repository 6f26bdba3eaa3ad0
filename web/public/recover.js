/**
 * Loads the page anew once the server answers, where its scripts or styles did not come.
 *
 * A network that changes ends the requests of a browser, and without its first script a page would stay empty. This file belongs to
 * no module, so it runs whatever else is missing.
 */
(() => {
  const MOST = 5;
  const KEPT = 'corral.reloads';
  const OURS = `${location.origin}/assets/`;
  let over = false;

  addEventListener('error', ({ target }) => isNeeded(target) && !over && recover(), true);
  addEventListener('load', () => {
    if (!over) remember(0);
    over = true; // parts that a page loads later are its own affair
  });

  function isNeeded(target) {
    if (target instanceof HTMLScriptElement) return target.src.startsWith(OURS);
    return target instanceof HTMLLinkElement && target.rel === 'stylesheet' && target.href.startsWith(OURS);
  }

  function recover() {
    over = true;
    const reloads = remembered();
    if (reloads >= MOST) return say('Files of this page did not come', 'Load the page again. Jobs that run go on.');
    document.documentElement.toggleAttribute('data-recovering', true); // what the page began now would be cut off, such as a sign-in
    say('This page did not come whole; trying again', 'It comes back by itself. Jobs that run go on.');
    const again = (pause) =>
      setTimeout(() => answers().then((up) => (up ? reload(reloads + 1) : again(Math.min(2 * pause, 10_000)))), pause);
    again(500 * 2 ** reloads);
  }

  function reload(reloads) {
    remember(reloads);
    location.reload();
  }

  function answers() {
    return fetch('/healthz', { cache: 'no-store' }).then(
      ({ status }) => ![502, 503, 504].includes(status),
      () => false,
    );
  }

  /** Show a heading and a sentence where the page would be, if nothing is there. */
  function say(heading, sentence) {
    const root = document.getElementById('root');
    if (!root) return addEventListener('DOMContentLoaded', () => say(heading, sentence), { once: true });
    if (root.childElementCount > 0) return;
    const words = document.createElement('main');
    words.setAttribute('role', 'status');
    words.append(document.createElement('h1'), document.createElement('p'));
    words.firstChild.textContent = heading;
    words.lastChild.textContent = sentence;
    root.replaceChildren(words);
  }

  /** How often this tab was loaded anew in a row; a browser that keeps nothing for a page is asked once. */
  function remembered() {
    try {
      return Number(sessionStorage.getItem(KEPT) ?? 0);
    } catch {
      return MOST;
    }
  }

  function remember(reloads) {
    try {
      if (reloads) sessionStorage.setItem(KEPT, String(reloads));
      else sessionStorage.removeItem(KEPT);
    } catch {
      return; // no storage here
    }
  }
})();
