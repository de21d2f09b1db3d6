/**
 * The API keys of the user, their changes and the requests. A secret is shown once, so a new one is kept here until the user has
 * copied it, on any page.
 */
import {
  CONSOLE_PATHS,
  type ConsoleKey,
  type KeyList,
  type KeyTermsBody,
  type NewKeyAnswer,
} from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { type ApiRequest, request, sessionStore } from '../api.js'
import { isOutcomeUnknown } from '../runs/create-failure.js'
import { createStore } from '../store.js'

/** Undefined until the first read. */
export const keysStore = createStore<KeyList | undefined>(undefined)

/** A request that creates a secret. */
export interface SecretRequest {
  readonly name: string
  readonly isRotated: boolean
}

export interface NewSecret extends SecretRequest {
  readonly apiKey: string
}

/** Secrets that the user has not closed, the oldest first. */
export const secretsStore = createStore<readonly NewSecret[]>([])

/** Number of secrets in progress, which leaving the console would lose. */
export const awaitedSecretsStore = createStore(0)

/** Requests without a response: the service may have carried them out. */
export const lostSecretsStore = createStore<readonly SecretRequest[]>([])

/** Number of changes without a response: only the list shows their outcome. */
export const lostChangesStore = createStore(0)

/** A change without a response: the service may have carried it out. */
export class ChangeUnknown extends Error {
  override readonly name = 'ChangeUnknown'
  constructor(key: ConsoleKey) {
    super(`"${printable(key.name)}" may have been changed: the answer was lost. The list is read again.`)
  }
}

/** The list with a key from the service. A new one comes first, as in the service's list. */
export function withKey(list: KeyList | undefined, key: ConsoleKey): KeyList {
  const { keys, next } = list ?? { keys: [], next: null }
  const isKnown = keys.some(({ id }) => id === key.id)
  return { keys: isKnown ? keys.map((each) => (each.id === key.id ? key : each)) : [key, ...keys], next }
}

/** The list with the page after `before`. A list that was read again meanwhile is unchanged. */
export function withPage(list: KeyList, before: string, page: KeyList): KeyList {
  if (list.next !== before) return list
  const known = new Set(list.keys.map(({ id }) => id))
  return { keys: [...list.keys, ...page.keys.filter(({ id }) => !known.has(id))], next: page.next }
}

/** The requests to the service. */
export interface KeyRequests {
  create(body: KeyTermsBody): Promise<NewKeyAnswer>
  change(id: number, body: KeyTermsBody): Promise<ConsoleKey>
  rotate(id: number): Promise<NewKeyAnswer>
}

/** `lost` without a response: the request is in `lostSecretsStore`. */
export type SecretOutcome = 'shown' | 'lost'

export interface KeyActions {
  /** Rejects after a refusal. */
  create(body: KeyTermsBody): Promise<SecretOutcome>
  /** Rejects after a refusal, and with `ChangeUnknown`. */
  change(key: ConsoleKey, body: KeyTermsBody): Promise<void>
  /** Rejects after a refusal. */
  rotate(key: ConsoleKey): Promise<SecretOutcome>
}

export function createKeyActions(requests: KeyRequests): KeyActions {
  const inTurn = createTurns()

  async function takeSecret(asked: SecretRequest, ask: () => Promise<NewKeyAnswer>): Promise<SecretOutcome> {
    awaitedSecretsStore.set((count) => count + 1)
    try {
      const { key, api_key: apiKey } = await ask()
      if (key === undefined || apiKey === undefined) throw new Error('The answer has no key.')
      keysStore.set((list) => withKey(list, key))
      secretsStore.set((secrets) => [...secrets, { ...asked, apiKey }])
      return 'shown'
    } catch (error) {
      if (!mayBeAccepted(error)) throw error
      lostSecretsStore.set((lost) => [...lost, asked])
      return 'lost'
    } finally {
      awaitedSecretsStore.set((count) => count - 1)
    }
  }

  return {
    create: (body) => takeSecret({ name: body.name ?? '', isRotated: false }, () => requests.create(body)),
    change: (key, body) =>
      inTurn(key, async () => {
        const changed = await requests.change(key.id, body).catch((error: unknown) => {
          if (!mayBeAccepted(error)) throw error
          lostChangesStore.set((count) => count + 1)
          throw new ChangeUnknown(key)
        })
        keysStore.set((list) => withKey(list, changed))
      }),
    rotate: (key) =>
      inTurn(key, () => takeSecret({ name: key.name, isRotated: true }, () => requests.rotate(key.id))),
  }
}

/** Whether the service may have carried it out. */
function mayBeAccepted(error: unknown): boolean {
  const { status } = error as { readonly status?: number }
  return status === undefined || isOutcomeUnknown({ status })
}

/** Runs the changes of one key in sequence: their answers are whole keys, and could arrive in another order. */
function createTurns() {
  const last = new Map<number, Promise<unknown>>()
  return async <Answer>({ id }: ConsoleKey, act: () => Promise<Answer>): Promise<Answer> => {
    const before = last.get(id) ?? Promise.resolve()
    const turn = before.then(() => {
      if (!sessionStore.get()) throw new Error('Not sent: you were signed out.')
      return act()
    })
    last.set(
      id,
      turn.catch(() => undefined),
    )
    return await turn
  }
}

export const keyActions = createKeyActions({
  create: (body) => request<NewKeyAnswer>('POST', CONSOLE_PATHS.keys, { body }),
  change: (id, body) => request<ConsoleKey>('PATCH', CONSOLE_PATHS.key, { params: { id }, body }),
  rotate: (id) => request<NewKeyAnswer>('POST', CONSOLE_PATHS.rotate, { params: { id } }),
})

/** `before`: the cursor of a page; without it the first one. */
export const readKeys = (options: Pick<ApiRequest, 'signal'>, before?: string): Promise<KeyList> =>
  request<KeyList>('GET', CONSOLE_PATHS.keys, {
    ...options,
    ...(before !== undefined && { query: { before } }),
  })

/** A usable length of a list of choices; an account may have more keys, most of them disabled. */
const MAX_CHOICES = 500

/** The newest keys, for the filters by key. */
export async function readKeyChoices(signal: AbortSignal): Promise<readonly ConsoleKey[]> {
  const keys: ConsoleKey[] = []
  let next: string | null = null
  do {
    const page = await readKeys({ signal }, next ?? undefined)
    keys.push(...page.keys)
    next = page.next
  } while (next != null && keys.length < MAX_CHOICES)
  return keys
}
