/** The schemas of the authentication endpoints' answers. */
import { KINDS } from '../../protocol/models.js'
import { type Json, record, refTo, text, time, timeOrNull } from './schemas.js'

const credits = (description: string): Json => ({ type: 'integer', description })
const creditsOrNull = (description: string): Json => ({ type: ['integer', 'null'], description })
const textOrNull = (description: string): Json => ({ type: ['string', 'null'], description })
const flag = (description: string): Json => ({ type: 'boolean', description })

export const AUTH_SCHEMAS: Json = {
  Session: record('A session of a user', {
    id: text('Names the session, for `x-rushes-session`; it is not the token'),
    email: text('Email of the user, in lower case'),
    account: record('The account of the user', {
      name: text('Name of the account'),
      balance: credits('Balance in credits'),
      banned: flag('A banned account can read, and creates nothing'),
    }),
    can_set_password: flag('The password can be set without the current one: the session began with a link'),
    has_password: flag('The user has a password'),
    expires_at: time('When the session ends, unless it is used before'),
    models: record(
      'The models of this service',
      Object.fromEntries(KINDS.map((kind) => [kind, text(`Name of the ${kind} model`)])),
    ),
    base_url: text('What the URLs of this service begin with'),
  }),
  NewKey: record('A new API key', {
    key: refTo('Key'),
    api_key: text('The key itself, which is sent only now'),
  }),
  Key: record('An API key, without its secret', {
    id: { type: 'integer', description: 'Number of the key' },
    name: text('Name of the key'),
    prefix: textOrNull('Its first characters'),
    disabled: flag('It is refused'),
    spent: credits('Credits that its runs have cost'),
    spend_limit: creditsOrNull('Credits that its runs may cost over its lifetime'),
    used: { type: 'integer', description: 'Accepted runs' },
    quota: { type: ['integer', 'null'], description: 'Runs that are accepted over its lifetime' },
    allowed_ips: {
      type: ['array', 'null'],
      items: { type: 'string' },
      description: 'Addresses and networks from which it may be used',
    },
    expires_at: timeOrNull('When it expires'),
    rate: textOrNull('Rate limit of its own, as `100/10s`'),
    created_at: time('When it was created'),
    last_used_at: timeOrNull('When it was last used, to the minute'),
    rotates_until: timeOrNull('Until when the secret before the last rotation is valid'),
  }),
}
