/** The pages of the API keys. */
import { hash, randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { KeyFormPage, KeysPage, type KeyValues } from '../../console/keys-page.js'
import { keyStateOf } from '../../protocol/limits.js'
import { dayOf } from '../../protocol/units.js'
import { cursorIn, idIn, type Query } from '../rules/console-requests.js'
import { readKeyTerms } from '../rules/key-terms.js'
import { Refusal } from '../rules/refusal.js'
import { keyOf } from '../rules/secrets.js'
import type { KeyDetails } from '../store/keys.js'
import { type ById, fieldOf, type Site, visitorOf } from './site.js'

const PAGE_SIZE = 100

/** The key with the id of the path: `new` is the form of a new one, and others are those of keys. */
const NEW = 'new'

export function addKeyRoutes(app: FastifyInstance, site: Site): void {
  const { store, clock } = site.options
  /** Throws `Refusal` (404). */
  const find = async (request: FastifyRequest): Promise<KeyDetails> => {
    const id = idIn((request.params as ById['Params']).id)
    const key = await store.findAccountKey(id, site.account(request))
    if (key === undefined) throw new Refusal('not_found')
    return key
  }
  const isNew = (request: FastifyRequest) => (request.params as ById['Params']).id === NEW

  app.get('/keys', (request, reply) => sendKeys(site, request, reply))
  app.get<ById>('/keys/:id', async (request, reply) => {
    const key = isNew(request) ? undefined : await find(request)
    return site.page(reply, KeyFormPage, { id: key?.id, values: textsOf(key), formKey: randomUUID() })
  })
  site.post(
    app,
    '/keys/:id',
    async (form, request, reply) => {
      if (isNew(request)) return await createKey(site, form, request, reply)
      const key = await find(request)
      const terms = changedTerms(valuesOf(form), textsOf(key), clock.now())
      await store.changeKey(key.id, terms, site.proof(request))
      return site.redirect(reply, '/keys')
    },
    async (problem, form, request, reply) => {
      const id = isNew(request) ? undefined : (await find(request)).id
      const formKey = fieldOf(form, 'form_key')
      return site.page(reply, KeyFormPage, { id, values: valuesOf(form), formKey, problem })
    },
  )
  for (const act of ['disable', 'enable'] as const)
    site.post(app, `/keys/:id/${act}`, async (_form, request, reply) => {
      const key = await find(request)
      await store.changeKey(key.id, { disabled: act === 'disable' }, site.proof(request))
      return site.redirect(reply, '/keys')
    })
}

/** A new secret is in the answer to its form, and in no other. */
async function sendKeys(
  site: Site,
  request: FastifyRequest,
  reply: FastifyReply,
  created?: { readonly secret: string | undefined },
): Promise<FastifyReply> {
  const { store, clock } = site.options
  const before = created === undefined ? cursorIn(request.query as Query, 'before') : undefined
  const found = await store.listAccountKeys({
    accountId: site.account(request),
    before,
    limit: PAGE_SIZE + 1,
  })
  const keys = found.slice(0, PAGE_SIZE)
  return site.page(reply, KeysPage, {
    keys: keys.map((key) => ({ ...key, state: keyStateOf(key, clock.now()) })),
    next: found.length > PAGE_SIZE ? keys.at(-1)?.id : undefined,
    created,
  })
}

async function createKey(
  site: Site,
  form: FormData,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { store, clock } = site.options
  const values = valuesOf(form)
  const { accountId, banned } = site.session(request).user
  if (banned) throw new Refusal('account_banned')
  const nowMs = clock.now()
  const terms = { ...readKeyTerms(values, nowMs, LABELS), name: values.name }
  // The same form gives the same key, so that a reload creates no other. Nobody can compute it without the session.
  const { apiKey, ...secret } = keyOf(
    hash('sha256', `${visitorOf(request).token} ${fieldOf(form, 'form_key')}`, 'buffer'),
  )
  reply.header('cache-control', 'no-store')
  try {
    await store.addKey({ ...terms, ...secret, accountId, nowMs, by: site.proof(request) })
  } catch (error) {
    // The same form was sent before.
    if (error instanceof Refusal || (await store.findKey(secret.hash)) === undefined) throw error
    return await sendKeys(site, request, reply, { secret: undefined })
  }
  return await sendKeys(site, request, reply, { secret: apiKey })
}

const textsOf = (key: KeyDetails | undefined): KeyValues => ({
  name: key?.name ?? '',
  spend_limit: String(key?.spendLimit ?? ''),
  quota: String(key?.quota ?? ''),
  allowed_ips: key?.allowedIps?.join('\n') ?? '',
  expires_at: key?.expiresAtMs === undefined ? '' : dayOf(key.expiresAtMs),
})

const valuesOf = (form: FormData): KeyValues =>
  Object.fromEntries(
    Object.keys(textsOf(undefined)).map((name) => [name, fieldOf(form, name).trim()]),
  ) as KeyValues

/** The fields, as the form names them. */
const LABELS = {
  spend_limit: 'Lifetime limit, in credits',
  quota: 'Lifetime limit, in runs',
  allowed_ips: 'Allowed addresses',
  expires_at: 'Expires',
}

/** The terms whose texts were changed: others may have values that the form cannot show. Throws `RushesError` (usage). */
function changedTerms(values: KeyValues, before: KeyValues, nowMs: number) {
  const changed = Object.entries(values).filter(([name, text]) => text !== before[name as keyof KeyValues])
  return readKeyTerms(Object.fromEntries(changed), nowMs, LABELS)
}
