/** The pages and their addresses. Search parameters are plain text, so that addresses can be read and written by hand. */

import { QueryClient } from '@tanstack/react-query';
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

export const client = new QueryClient({
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
  component: lazyRouteComponent(() => import('./pages/Home'), 'Home'),
});

const job = createRoute({
  getParentRoute: () => frame,
  path: '/jobs/$ref',
  validateSearch: texts('tab', 'task', 'attempt', 'find', 'kind', 'role', 'state', 'profile', 'before', 'output', 'path', 'file', 'exit', 'node'),
  component: lazyRouteComponent(() => import('./pages/Job'), 'Job'),
});

const compare = createRoute({
  getParentRoute: () => frame,
  path: '/compare',
  validateSearch: texts('job', 'with'),
  component: lazyRouteComponent(() => import('./pages/Compare'), 'Compare'),
});

const openService = createRoute({
  getParentRoute: () => frame,
  path: '/jobs/$ref/open/$task/$port',
  validateSearch: texts('wait'),
  component: lazyRouteComponent(() => import('./pages/OpenService'), 'OpenService'),
});

const submit = createRoute({
  getParentRoute: () => frame,
  path: '/submit',
  validateSearch: texts('from', 'template'),
  component: lazyRouteComponent(() => import('./pages/Submit'), 'Submit'),
});

const templates = createRoute({
  getParentRoute: () => frame,
  path: '/templates',
  validateSearch: texts('q', 'kind', 'whose', 'page'),
  component: lazyRouteComponent(() => import('./pages/Templates'), 'Templates'),
});

const template = createRoute({
  getParentRoute: () => frame,
  path: '/templates/$kind/$name',
  validateSearch: texts('version'),
  component: lazyRouteComponent(() => import('./pages/Template'), 'Template'),
});

const notebook = createRoute({
  getParentRoute: () => frame,
  path: '/notebook',
  component: lazyRouteComponent(() => import('./pages/Notebook'), 'Notebook'),
});

const nodes = createRoute({
  getParentRoute: () => frame,
  path: '/nodes',
  validateSearch: texts('q', 'node'),
  component: lazyRouteComponent(() => import('./pages/Nodes'), 'Nodes'),
});

const alerts = createRoute({
  getParentRoute: () => frame,
  path: '/alerts',
  validateSearch: texts('q'),
  component: lazyRouteComponent(() => import('./pages/Alerts'), 'Alerts'),
});

const usage = createRoute({
  getParentRoute: () => frame,
  path: '/usage',
  validateSearch: texts('by', 'days', 'from', 'to', 'user', 'queue', 'show'),
  component: lazyRouteComponent(() => import('./pages/Usage'), 'Usage'),
});

const efficiency = createRoute({
  getParentRoute: () => frame,
  path: '/efficiency',
  validateSearch: texts('days', 'from', 'to', 'user', 'queue'),
  component: lazyRouteComponent(() => import('./pages/Efficiency'), 'Efficiency'),
});

const fairness = createRoute({
  getParentRoute: () => frame,
  path: '/fairness',
  validateSearch: texts('week'),
  component: lazyRouteComponent(() => import('./pages/Fairness'), 'Fairness'),
});

const idle = createRoute({
  getParentRoute: () => frame,
  path: '/idle',
  validateSearch: texts('q'),
  component: lazyRouteComponent(() => import('./pages/Idle'), 'Idle'),
});

const timeline = createRoute({
  getParentRoute: () => frame,
  path: '/timeline',
  validateSearch: texts('node', 'hours'),
  component: lazyRouteComponent(() => import('./pages/DeviceTimeline'), 'DeviceTimelinePage'),
});

const configuration = createRoute({
  getParentRoute: () => frame,
  path: '/configuration',
  validateSearch: texts('document', 'revision', 'against', 'edit', 'new'),
  component: lazyRouteComponent(() => import('./pages/Configuration'), 'Configuration'),
});

const queues = createRoute({
  getParentRoute: () => frame,
  path: '/queues',
  validateSearch: texts('queue', 'resource', 'move'),
  component: lazyRouteComponent(() => import('./pages/Queues'), 'Queues'),
});

const line = createRoute({
  getParentRoute: () => frame,
  path: '/line',
  validateSearch: texts('queue', 'job'),
  component: lazyRouteComponent(() => import('./pages/Line'), 'Line'),
});

const receipts = createRoute({
  getParentRoute: () => frame,
  path: '/receipts',
  validateSearch: texts('queue'),
  component: lazyRouteComponent(() => import('./pages/Receipts'), 'Receipts'),
});

const estimates = createRoute({
  getParentRoute: () => frame,
  path: '/estimates',
  validateSearch: texts('queue', 'days'),
  component: lazyRouteComponent(() => import('./pages/Estimates'), 'Estimates'),
});

const whatIf = createRoute({
  getParentRoute: () => frame,
  path: '/what-if',
  component: lazyRouteComponent(() => import('./pages/WhatIf'), 'WhatIf'),
});

const policyShadow = createRoute({
  getParentRoute: () => frame,
  path: '/policy-shadow',
  validateSearch: texts('policy', 'documents', 'hours', 'anew', 'comparison'),
  component: lazyRouteComponent(() => import('./pages/PolicyShadow'), 'PolicyShadow'),
});

const benchmarks = createRoute({
  getParentRoute: () => frame,
  path: '/benchmarks',
  validateSearch: texts('node', 'metric', 'before', 'after'),
  component: lazyRouteComponent(() => import('./pages/Benchmarks'), 'Benchmarks'),
});

const serverParts = createRoute({
  getParentRoute: () => frame,
  path: '/server',
  component: lazyRouteComponent(() => import('./pages/ServerParts'), 'ServerParts'),
});

const account = createRoute({
  getParentRoute: () => frame,
  path: '/account',
  component: lazyRouteComponent(() => import('./pages/Account'), 'Account'),
});

const storages = createRoute({
  getParentRoute: () => frame,
  path: '/storages',
  component: lazyRouteComponent(() => import('./pages/Storages'), 'Storages'),
});

const storage = createRoute({
  getParentRoute: () => frame,
  path: '/storages/$name',
  validateSearch: texts('path', 'file'),
  component: lazyRouteComponent(() => import('./pages/Storage'), 'Storage'),
});

const users = createRoute({
  getParentRoute: () => frame,
  path: '/users',
  validateSearch: texts('q'),
  component: lazyRouteComponent(() => import('./pages/Users'), 'Users'),
});

const batch = createRoute({
  getParentRoute: () => frame,
  path: '/users/batch',
  component: lazyRouteComponent(() => import('./pages/UsersBatch'), 'UsersBatch'),
});

const audit = createRoute({
  getParentRoute: () => frame,
  path: '/audit',
  validateSearch: texts('by', 'action', 'resource', 'refused', 'days'),
  component: lazyRouteComponent(() => import('./pages/Audit'), 'Audit'),
});

const groups = createRoute({
  getParentRoute: () => frame,
  path: '/groups',
  validateSearch: texts('group'),
  component: lazyRouteComponent(() => import('./pages/Groups'), 'Groups'),
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
