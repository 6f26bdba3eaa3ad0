/**
 * The service worker: while the server is down, a reload shows the page from a cache, and the page says so itself.
 *
 * The server always comes first for pages, so an upgrade is never hidden. Only the files of a build are cached, at most
 * those of this build and of the one before it; answers of the API never are. The build fills in FILES and VERSION.
 */

const VERSION = '__VERSION__';
const FILES = __FILES__;
const PREFIX = 'corral-';
const KEPT = 2;
const NOT_PAGES = ['/api/', '/rest-server/', '/healthz', '/readyz', '/metrics'];
const DOWN = [502, 503, 504];

self.addEventListener('install', (event) => {
  event.waitUntil(fill().then(() => self.skipWaiting()));
});

self.addEventListener('activate', (event) => {
  event.waitUntil(empty().then(() => self.clients.claim()));
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const address = new URL(request.url);
  if (request.method !== 'GET' || address.origin !== self.location.origin) return;
  if (request.mode === 'navigate') {
    if (isPage(address.pathname)) event.respondWith(page(request));
  } else if (FILES.includes(address.pathname)) {
    event.respondWith(file(request));
  }
});

async function fill() {
  const cache = await caches.open(PREFIX + VERSION);
  // Not what a sign-in proxy leads to: that page would stand for the portal's while the server is down.
  await cache.addAll([new Request('/', { cache: 'reload', redirect: 'error' }), ...FILES]);
}

/** Remove all caches but the newest two: a tab of the build before may still need its files. */
async function empty() {
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== PREFIX + VERSION);
  await Promise.all(names.slice(0, Math.max(0, names.length - KEPT + 1)).map((name) => caches.delete(name)));
}

/** Whether an address is one of the portal's pages, as the server tells it. */
function isPage(path) {
  return !NOT_PAGES.some((prefix) => path.startsWith(prefix)) && !path.split('/').pop().includes('.');
}

/** What the server says; while it is down (or a proxy says that it is), the page of this build. */
async function page(request) {
  try {
    const answer = await fetch(request);
    if (!DOWN.includes(answer.status)) return answer;
    return (await shell()) ?? answer;
  } catch (error) {
    const kept = await shell();
    if (kept) return kept;
    throw error;
  }
}

async function shell() {
  return (await caches.open(PREFIX + VERSION)).match('/', { ignoreVary: true });
}

/** A file of this build; one whose name has its hash is the same in the cache of the build before. */
async function file(request) {
  const own = await (await caches.open(PREFIX + VERSION)).match(request, { ignoreVary: true });
  return own ?? (await caches.match(request, { ignoreVary: true })) ?? fetch(request);
}
