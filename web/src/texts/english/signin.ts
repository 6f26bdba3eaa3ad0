/** The texts of signing in, and of signing in again over a page whose session ended. */

import { part } from '../language';

export const signIn = part('signIn', {
  title: 'Sign in',
  heading: 'Sign in to {product}',
  orPassword: 'or with a password',
  user: 'User',
  password: 'Password',
  enter: 'Sign in',
  entering: 'Signing in',
  failed: 'Signing in did not work; try again.',
  noPassword: 'No password? Starting the server prints a one-time link, and an administrator can make you one:',
  refused: 'The provider’s answer was refused; try again.',
});

/** What the server's reasons for refusing a provider's answer mean. */
export const refusals = part('refusals', {
  'account-disabled': 'Your account is disabled; ask an administrator.',
  'account-of-another': 'There is an account of your name already that is not linked with you; ask an administrator.',
  'address-too-long': 'The address of the page to go on to is too long; sign in, and open the page then.',
  'no-user-name': 'The provider does not say your user name; an administrator sets oidc_user_claim.',
  'not-in-a-group': 'You are in none of the groups that may sign in; ask an administrator.',
  'provider-unavailable': 'The sign-in provider does not answer; try again in a moment.',
  'sign-in-refused': 'The provider did not sign you in; try again.',
  'single-user': 'This server takes one user, and has one.',
  'stale-sign-in': 'That sign-in was begun in another window, or too long ago; try again.',
});

export const sessionEnded = part('sessionEnded', {
  title: 'Your session has ended',
  goOn: 'Go on',
  again: 'Sign in again as {user}; what you typed on this page is kept.',
  password: 'Password',
  otherwise: 'With a link or a provider, {tab}, and go on here without a password.',
  tab: 'sign in in another tab',
});
