import { InfiniteQueryObserver, QueryClient } from '@tanstack/react-query';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Refresher } from './live';

afterEach(() => vi.useRealTimers());

describe('events of jobs', () => {
  it('do not throw away a further page that a reader waits for, and are heeded when it has come', async () => {
    vi.useFakeTimers();
    const client = new QueryClient();
    const asked: string[] = [];
    let arrive = () => {};
    const list = new InfiniteQueryObserver(client, {
      queryKey: ['jobs', 'list'],
      queryFn: async ({ pageParam }: { pageParam: string }) => {
        asked.push(pageParam);
        if (pageParam === 'older' && asked.length === 2) await new Promise<void>((resolve) => (arrive = resolve));
        return { items: [`${pageParam || 'newer'} ${asked.length}`], next: pageParam ? null : 'older' };
      },
      initialPageParam: '',
      getNextPageParam: (page: { items: string[]; next: string | null }) => page.next,
      retry: false,
    });
    const close = list.subscribe(() => {});
    await vi.advanceTimersByTimeAsync(0);
    const more = list.fetchNextPage();
    await vi.advanceTimersByTimeAsync(0);
    const refresher = new Refresher(client);
    refresher.note({ job: 'j', kind: 'job.succeeded' });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked).toEqual(['', 'older']);
    arrive();
    await more;
    expect(list.getCurrentResult().data?.pages.map(({ items }) => items)).toEqual([['newer 1'], ['older 2']]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(list.getCurrentResult().data?.pages.map(({ items }) => items)).toEqual([['newer 3'], ['older 4']]);
    refresher.close();
    close();
  });
});
