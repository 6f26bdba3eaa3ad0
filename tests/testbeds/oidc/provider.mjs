// Why: sign-ins are tested with a provider that others wrote and certified; this only tells it who its people are.
// Its packages are in the folder named first, so they are imported by path. What it is to be comes as JSON on stdin.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.argv[2]}/package.json`);
const { Provider } = await import(pathToFileURL(require.resolve('oidc-provider')).href);
const { issuer, port, clients, people } = JSON.parse(readFileSync(0, 'utf8'));

const provider = new Provider(issuer, {
  clients,
  claims: {
    openid: ['sub'],
    profile: ['preferred_username', 'name', 'realm_access', 'groups'],
    email: ['email'],
  },
  conformIdTokenClaims: false,
  cookies: { keys: ['a key of a test'] },
  features: {
    devInteractions: { enabled: false },
    rpInitiatedLogout: { enabled: true },
    backchannelLogout: { enabled: true },
  },
  // It calls no address of its own machine, which is where the tests are.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  pkce: { required: () => true },
  interactions: { url: (_, interaction) => `/as/${interaction.uid}` },
  findAccount: (_, sub) => people[sub] && { accountId: sub, claims: async () => ({ sub, ...people[sub] }) },
  loadExistingGrant: async (ctx) => {
    const grant = new provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
    grant.addOIDCScope([...ctx.oidc.requestParamScopes].join(' '));
    await grant.save();
    return grant;
  },
});

// The provider's page takes everybody's word: whoever they say (`?sub=`) has signed in; `?deny` refuses.
provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/as/')) return next();
  if (ctx.query.sub === undefined && ctx.query.deny === undefined) {
    ctx.type = 'html';
    ctx.body = '<form><label>Who are you? <input name="sub"></label><button>Continue</button></form>';
    return;
  }
  const result =
    ctx.query.deny === undefined ? { login: { accountId: ctx.query.sub } } : { error: 'access_denied' };
  ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result));
});

provider.on('backchannel.error', (_, error) => console.error(error));
provider.listen(port, '127.0.0.1', () => console.log('ready'));
