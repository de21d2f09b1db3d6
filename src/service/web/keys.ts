/** The pages of the API keys. */
import { hash, randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { KeyFormPage, KeysPage, type KeyValues, type ShownKey } from '../../console/index.js'
import { MAX_ALLOWED_IPS, MAX_CREDITS, MAX_TIME_MS } from '../../protocol/credentials.js'
import { shortened } from '../../protocol/text.js'
import { cursorIn, idIn, type Query } from '../rules/console-requests.js'
import type { KeyTerms } from '../rules/key-terms.js'
import { keyNameOf } from '../rules/key-terms.js'
import { parseNetwork } from '../rules/networks.js'
import { formatRate } from '../rules/rate.js'
import { invalidInput, Refusal } from '../rules/refusal.js'
import { keyOf } from '../rules/secrets.js'
import { DAY_MS, dayOf, parseDay } from '../rules/times.js'
import type { KeyDetails } from '../store/keys.js'
import { type ById, fieldOf, type Site } from './site.js'
import { visitorOf } from './visitor.js'

const PAGE_SIZE = 100

export function addKeyRoutes(app: FastifyInstance, site: Site): void {
  const { store, clock } = site.options

  /** A new secret is in the answer to its form, and in no other. */
  async function sendKeys(
    request: FastifyRequest,
    reply: FastifyReply,
    created?: { readonly secret: string | undefined },
  ): Promise<FastifyReply> {
    const before = created === undefined ? cursorIn(request.query as Query, 'before') : undefined
    const [frame, found] = await Promise.all([
      site.frame(request),
      store.listAccountKeys({ accountId: site.account(request), before, limit: PAGE_SIZE + 1 }),
    ])
    const keys = found.slice(0, PAGE_SIZE)
    return site.page(reply, KeysPage, {
      frame,
      nowMs: clock.now(),
      keys: keys.map(shownKey),
      next: found.length > PAGE_SIZE ? keys.at(-1)?.id : undefined,
      created,
    })
  }

  const sendForm = async (
    request: FastifyRequest,
    reply: FastifyReply,
    form: { id: number | undefined; values: KeyValues; formKey: string; problem?: string },
  ) =>
    site.page(
      reply,
      KeyFormPage,
      { frame: await site.frame(request), ...form },
      form.problem === undefined ? 200 : 422,
    )

  const find = async (request: FastifyRequest): Promise<KeyDetails> => {
    const id = idIn((request.params as ById['Params']).id)
    const key = await store.findAccountKey(id, site.account(request))
    if (key === undefined) throw new Refusal('not_found')
    return key
  }

  /** Shows the form again if the service refuses it. */
  const attempt = async (
    request: FastifyRequest,
    reply: FastifyReply,
    form: { readonly id: number | undefined; readonly values: KeyValues; readonly formKey: string },
    work: () => Promise<FastifyReply>,
  ) => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Refusal) || error.status === 401) throw error
      return await sendForm(request, reply, { ...form, problem: error.message })
    }
  }

  app.get('/keys', (request, reply) => sendKeys(request, reply))
  app.get('/keys/new', (request, reply) =>
    sendForm(request, reply, { id: undefined, values: textsOf(undefined), formKey: randomUUID() }),
  )
  app.get<ById>('/keys/:id', async (request, reply) => {
    const key = await find(request)
    return await sendForm(request, reply, { id: key.id, values: textsOf(key), formKey: '' })
  })

  site.post(app, '/keys', async (form, request, reply) => {
    const { accountId, banned } = site.session(request).user
    const values = valuesOf(form)
    const formKey = fieldOf(form, 'form_key')
    return await attempt(request, reply, { id: undefined, values, formKey }, async () => {
      if (banned) throw new Refusal('account_banned')
      const nowMs = clock.now()
      const terms = changedTerms(values, textsOf(undefined), nowMs)
      // The same form gives the same key, so that a reload creates no other. Nobody can compute it without the session.
      const { apiKey, ...secret } = keyOf(hash('sha256', `${visitorOf(request).token} ${formKey}`, 'buffer'))
      reply.header('cache-control', 'no-store')
      const isThere = async () => (await store.findKey(secret.hash)) !== undefined
      if (await isThere()) return await sendKeys(request, reply, { secret: undefined })
      const by = site.proof(request)
      const name = keyNameOf(values.name)
      try {
        await store.addKey({ ...terms, ...secret, name, accountId, nowMs, by })
      } catch (error) {
        // The same form was sent at the same time.
        if (error instanceof Refusal || !(await isThere())) throw error
        return await sendKeys(request, reply, { secret: undefined })
      }
      return await sendKeys(request, reply, { secret: apiKey })
    })
  })

  site.post(app, '/keys/:id', async (form, request, reply) => {
    const key = await find(request)
    const values = valuesOf(form)
    return await attempt(request, reply, { id: key.id, values, formKey: '' }, async () => {
      const terms = changedTerms(values, textsOf(key), clock.now())
      await store.changeKey(key.id, terms, site.proof(request))
      return site.redirect(reply, `/keys#key-${key.id}`)
    })
  })

  for (const act of ['disable', 'enable'] as const)
    site.post(app, `/keys/:id/${act}`, async (_form, request, reply) => {
      const key = await find(request)
      await store.changeKey(key.id, { disabled: act === 'disable' }, site.proof(request))
      return site.redirect(reply, `/keys#key-${key.id}`)
    })
}

const shownKey = ({ rate, ...key }: KeyDetails): ShownKey => ({
  ...key,
  rate: rate === undefined ? undefined : formatRate(rate),
})

const textsOf = (key: KeyDetails | undefined): KeyValues => ({
  name: key?.name ?? '',
  spend_limit: String(key?.spendLimit ?? ''),
  quota: String(key?.quota ?? ''),
  allowed_ips: key?.allowedIps?.join('\n') ?? '',
  expires_at: key?.expiresAtMs === undefined ? '' : dayOf(key.expiresAtMs),
})

const valuesOf = (form: FormData): KeyValues => ({
  name: fieldOf(form, 'name').trim(),
  spend_limit: fieldOf(form, 'spend_limit').trim(),
  quota: fieldOf(form, 'quota').trim(),
  allowed_ips: fieldOf(form, 'allowed_ips').trim(),
  expires_at: fieldOf(form, 'expires_at').trim(),
})

/** The terms whose texts were changed: others may have values that the form cannot show. Throws `Refusal` (400). */
function changedTerms(values: KeyValues, before: KeyValues, nowMs: number): Partial<KeyTerms> {
  const isChanged = (name: keyof KeyValues) => values[name] !== before[name]
  return {
    ...(isChanged('name') && { name: keyNameOf(values.name) }),
    ...(isChanged('spend_limit') && { spendLimit: limitOf('spend_limit', values.spend_limit) }),
    ...(isChanged('quota') && { quota: limitOf('quota', values.quota) }),
    ...(isChanged('allowed_ips') && { allowedIps: networksOf(values.allowed_ips) }),
    ...(isChanged('expires_at') && { expiresAtMs: expiryOf(values.expires_at, nowMs) }),
  }
}

function limitOf(name: string, text: string): number | undefined {
  if (text === '') return undefined
  const value = /^\d{1,13}$/.test(text) ? Number(text) : Number.NaN
  if (value <= MAX_CREDITS) return value
  throw invalidInput(`${name}: enter 0 or more, or leave it empty for no limit.`)
}

function networksOf(text: string): readonly string[] | undefined {
  const networks = text.split(/[\s,]+/).filter(Boolean)
  const wrong = networks.find((each) => parseNetwork(each) === undefined)
  if (wrong !== undefined)
    throw invalidInput(`allowed_ips: "${shortened(wrong)}" is not an IP address or CIDR range.`)
  if (networks.length > MAX_ALLOWED_IPS)
    throw invalidInput(`allowed_ips: at most ${MAX_ALLOWED_IPS} addresses are possible.`)
  return networks.length === 0 ? undefined : networks
}

/** The end of the day. */
function expiryOf(text: string, nowMs: number): number | undefined {
  if (text === '') return undefined
  const day = parseDay(text)
  const ms = day === undefined ? Number.NaN : day + DAY_MS - 1
  if (!(ms <= MAX_TIME_MS)) throw invalidInput(`expires_at: "${shortened(text)}" is not a day.`)
  if (ms > nowMs) return ms
  throw invalidInput('expires_at: this day is over. To stop a key, disable it.')
}
