/** Starts the portal. */

import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { createRoot } from 'react-dom/client';
import { keepPage } from './lib/offline';
import { startTheme } from './lib/theme';
import { client, router } from './router';
import './styles.css';

startTheme();
keepPage();
createRoot(document.getElementById('root')!).render(
  <QueryClientProvider client={client}>
    <RouterProvider router={router} />
  </QueryClientProvider>,
);
