// @vitest-environment happy-dom
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { beyond, TabBar } from './Tabs';

afterEach(cleanup);

it('tells at which edge tabs are cut', () => {
  expect(beyond({ scrollLeft: 0, clientWidth: 390, scrollWidth: 390 })).toEqual({ left: false, right: false });
  expect(beyond({ scrollLeft: 0, clientWidth: 390, scrollWidth: 500 })).toEqual({ left: false, right: true });
  expect(beyond({ scrollLeft: 60, clientWidth: 390, scrollWidth: 500 })).toEqual({ left: true, right: true });
  expect(beyond({ scrollLeft: 109.4, clientWidth: 390, scrollWidth: 500 })).toEqual({ left: true, right: false });
});

it('shows arrows where there is more, and moves them as the row is scrolled', () => {
  const { container } = render(
    <TabBar label="Pages">
      <a href="/a">A</a>
    </TabBar>,
  );
  const edges = () => [...container.querySelectorAll('[data-more]')].map((each) => each.getAttribute('data-more'));
  const nav = screen.getByRole('navigation', { name: 'Pages' });
  expect(edges()).toEqual([]);
  Object.defineProperties(nav, { clientWidth: { value: 390 }, scrollWidth: { value: 500 } });
  act(() => void fireEvent.scroll(nav));
  expect(edges()).toEqual(['right']);
  nav.scrollLeft = 110;
  act(() => void fireEvent.scroll(nav));
  expect(edges()).toEqual(['left']);
});
