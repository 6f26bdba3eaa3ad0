/** The pages and their addresses. Search parameters are plain text, so that addresses can be read and written by hand. */

import { QueryCache, QueryClient } from '@tanstack/react-query';
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router';
import { ApiError, session } from './api/client';
import * as ask from './api/queries';
import { Shell } from './components/Shell';
import { arrived, comeBack } from './lib/offline';
import { Jobs } from './pages/Jobs';
import { Broken, NotFound } from './pages/Lost';
import { SignIn } from './pages/SignIn';

type Text = Record<string, unknown>;

/** The named parameters that are text and not empty. */
function texts<const Name extends string>(...names: Name[]): (search: Text) => { [Each in Name]?: string } {
  return (search) =>
    Object.fromEntries(
      names.flatMap((name) => (typeof search[name] === 'string' && search[name] ? [[name, search[name]]] : [])),
    ) as { [Each in Name]?: string };
}

/** The component of a page, whose files are loaded when it is first opened. */
const pageOf: typeof lazyRouteComponent = (importer, name) => lazyRouteComponent(() => arrived(importer()), name);

export const client: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: (error) => comeBack(client, error) }),
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      retry: (failures, error) => failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
    },
  },
});

const root = createRootRouteWithContext<{ client: QueryClient }>()({
  component: Outlet,
  notFoundComponent: NotFound,
  errorComponent: Broken,
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: texts('next', 'refused'),
  component: SignIn,
});

const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  component: Shell,
  beforeLoad: async ({ context, location }) => {
    try {
      await context.client.ensureQueryData(ask.me);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
      const next = location.href === '/' ? undefined : location.href;
      throw redirect({ to: '/sign-in', search: { next } });
    }
  },
});

const jobs = createRoute({
  getParentRoute: () => frame,
  path: '/',
  validateSearch: texts('state', 'user', 'queue', 'q', 'tag', 'order', 'group', 'priority', 'job'),
  component: Jobs,
});

const home = createRoute({
  getParentRoute: () => frame,
  path: '/home',
  component: pageOf(() => import('./pages/Home'), 'Home'),
});

const job = createRoute({
  getParentRoute: () => frame,
  path: '/jobs/$ref',
  validateSearch: texts('tab', 'task', 'attempt', 'find', 'kind', 'role', 'state', 'profile', 'before', 'output', 'path', 'file', 'exit', 'node'),
  component: pageOf(() => import('./pages/Job'), 'Job'),
});

const compare = createRoute({
  getParentRoute: () => frame,
  path: '/compare',
  validateSearch: texts('job', 'with'),
  component: pageOf(() => import('./pages/Compare'), 'Compare'),
});

const openService = createRoute({
  getParentRoute: () => frame,
  path: '/jobs/$ref/open/$task/$port',
  validateSearch: texts('wait'),
  component: pageOf(() => import('./pages/OpenService'), 'OpenService'),
});

const submit = createRoute({
  getParentRoute: () => frame,
  path: '/submit',
  validateSearch: texts('from', 'template'),
  component: pageOf(() => import('./pages/Submit'), 'Submit'),
});

const templates = createRoute({
  getParentRoute: () => frame,
  path: '/templates',
  validateSearch: texts('q', 'kind', 'whose', 'page'),
  component: pageOf(() => import('./pages/Templates'), 'Templates'),
});

const template = createRoute({
  getParentRoute: () => frame,
  path: '/templates/$kind/$name',
  validateSearch: texts('version'),
  component: pageOf(() => import('./pages/Template'), 'Template'),
});

const notebook = createRoute({
  getParentRoute: () => frame,
  path: '/notebook',
  component: pageOf(() => import('./pages/Notebook'), 'Notebook'),
});

const nodes = createRoute({
  getParentRoute: () => frame,
  path: '/nodes',
  validateSearch: texts('q', 'node'),
  component: pageOf(() => import('./pages/Nodes'), 'Nodes'),
});

const alerts = createRoute({
  getParentRoute: () => frame,
  path: '/alerts',
  validateSearch: texts('q'),
  component: pageOf(() => import('./pages/Alerts'), 'Alerts'),
});

const usage = createRoute({
  getParentRoute: () => frame,
  path: '/usage',
  validateSearch: texts('by', 'days', 'from', 'to', 'user', 'queue', 'show'),
  component: pageOf(() => import('./pages/Usage'), 'Usage'),
});

const efficiency = createRoute({
  getParentRoute: () => frame,
  path: '/efficiency',
  validateSearch: texts('days', 'from', 'to', 'user', 'queue'),
  component: pageOf(() => import('./pages/Efficiency'), 'Efficiency'),
});

const fairness = createRoute({
  getParentRoute: () => frame,
  path: '/fairness',
  validateSearch: texts('week'),
  component: pageOf(() => import('./pages/Fairness'), 'Fairness'),
});

const idle = createRoute({
  getParentRoute: () => frame,
  path: '/idle',
  validateSearch: texts('q'),
  component: pageOf(() => import('./pages/Idle'), 'Idle'),
});

const timeline = createRoute({
  getParentRoute: () => frame,
  path: '/timeline',
  validateSearch: texts('node', 'hours'),
  component: pageOf(() => import('./pages/DeviceTimeline'), 'DeviceTimelinePage'),
});

const configuration = createRoute({
  getParentRoute: () => frame,
  path: '/configuration',
  validateSearch: texts('document', 'revision', 'against', 'edit', 'new', 'deleted'),
  component: pageOf(() => import('./pages/Configuration'), 'Configuration'),
});

const queues = createRoute({
  getParentRoute: () => frame,
  path: '/queues',
  validateSearch: texts('queue', 'resource', 'move'),
  component: pageOf(() => import('./pages/Queues'), 'Queues'),
});

const line = createRoute({
  getParentRoute: () => frame,
  path: '/line',
  validateSearch: texts('queue', 'job'),
  component: pageOf(() => import('./pages/Line'), 'Line'),
});

const receipts = createRoute({
  getParentRoute: () => frame,
  path: '/receipts',
  validateSearch: texts('queue'),
  component: pageOf(() => import('./pages/Receipts'), 'Receipts'),
});

const estimates = createRoute({
  getParentRoute: () => frame,
  path: '/estimates',
  validateSearch: texts('queue', 'days'),
  component: pageOf(() => import('./pages/Estimates'), 'Estimates'),
});

const whatIf = createRoute({
  getParentRoute: () => frame,
  path: '/what-if',
  component: pageOf(() => import('./pages/WhatIf'), 'WhatIf'),
});

const policyShadow = createRoute({
  getParentRoute: () => frame,
  path: '/policy-shadow',
  validateSearch: texts('policy', 'documents', 'hours', 'anew', 'comparison'),
  component: pageOf(() => import('./pages/PolicyShadow'), 'PolicyShadow'),
});

const benchmarks = createRoute({
  getParentRoute: () => frame,
  path: '/benchmarks',
  validateSearch: texts('node', 'metric', 'before', 'after'),
  component: pageOf(() => import('./pages/Benchmarks'), 'Benchmarks'),
});

const serverParts = createRoute({
  getParentRoute: () => frame,
  path: '/server',
  component: pageOf(() => import('./pages/ServerParts'), 'ServerParts'),
});

const account = createRoute({
  getParentRoute: () => frame,
  path: '/account',
  component: pageOf(() => import('./pages/Account'), 'Account'),
});

const storages = createRoute({
  getParentRoute: () => frame,
  path: '/storages',
  component: pageOf(() => import('./pages/Storages'), 'Storages'),
});

const storage = createRoute({
  getParentRoute: () => frame,
  path: '/storages/$name',
  validateSearch: texts('path', 'file'),
  component: pageOf(() => import('./pages/Storage'), 'Storage'),
});

const users = createRoute({
  getParentRoute: () => frame,
  path: '/users',
  validateSearch: texts('q'),
  component: pageOf(() => import('./pages/Users'), 'Users'),
});

const batch = createRoute({
  getParentRoute: () => frame,
  path: '/users/batch',
  component: pageOf(() => import('./pages/UsersBatch'), 'UsersBatch'),
});

const audit = createRoute({
  getParentRoute: () => frame,
  path: '/audit',
  validateSearch: texts('by', 'action', 'resource', 'refused', 'days'),
  component: pageOf(() => import('./pages/Audit'), 'Audit'),
});

const groups = createRoute({
  getParentRoute: () => frame,
  path: '/groups',
  validateSearch: texts('group'),
  component: pageOf(() => import('./pages/Groups'), 'Groups'),
});

const pages = [
  jobs, home, job, compare, openService, submit, templates, template, notebook, queues, line, receipts, estimates, whatIf, policyShadow, nodes, timeline, benchmarks, serverParts, alerts, usage, efficiency, fairness, idle,
  configuration, account, storages,
  storage, users, batch, groups, audit,
];

export const router = createRouter({
  routeTree: root.addChildren([signIn, frame.addChildren(pages)]),
  context: { client },
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const kept = Object.entries(search).filter(([, value]) => value !== undefined && value !== '');
    const text = new URLSearchParams(kept as [string, string][]).toString().replaceAll('%2C', ',');
    return text && `?${text}`;
  },
  scrollRestoration: true,
  defaultPreload: false,
});

session.onLost = () => {
  if (location.pathname === '/sign-in') return;
  client.clear();
  void router.navigate({ to: '/sign-in', search: { next: location.pathname + location.search } });
};

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
  interface HistoryState {
    /** What the sign-in page says first; it is no part of the address. */
    notice?: string;
  }
}
