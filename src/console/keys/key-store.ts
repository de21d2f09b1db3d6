/**
 * The user's API keys, and the requests that change them. A secret can be shown only once. A new secret is therefore
 * kept here until the user closes its notice, which is shown on every page.
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

/** Undefined until the first response. */
export const keysStore = createStore<KeyList | undefined>(undefined)

/** A request that creates a secret. */
export interface SecretRequest {
  readonly name: string
}

export interface NewSecret extends SecretRequest {
  readonly apiKey: string
}

/** New secrets whose notice the user has not closed, oldest first. */
export const secretsStore = createStore<readonly NewSecret[]>([])

/** Number of secrets that are being created. They would be lost if the user left the console now. */
export const awaitedSecretsStore = createStore(0)

/** Requests for a secret that got no valid response. The service may have carried them out. */
export const lostSecretsStore = createStore<readonly SecretRequest[]>([])

/** Number of changes that got no valid response. The key list must be reloaded to see whether they were made. */
export const lostChangesStore = createStore(0)

/** A change got no valid response. The service may have carried it out. */
export class ChangeUnknown extends Error {
  override readonly name = 'ChangeUnknown'
  constructor(key: ConsoleKey) {
    super(`"${printable(key.name)}" may have been changed: the response was lost. The list reloads.`)
  }
}

/** Adds or replaces a key. A new key comes first, as in the service's list. */
export function withKey(list: KeyList | undefined, key: ConsoleKey): KeyList {
  const { keys, next } = list ?? { keys: [], next: null }
  const isKnown = keys.some(({ id }) => id === key.id)
  return { keys: isKnown ? keys.map((each) => (each.id === key.id ? key : each)) : [key, ...keys], next }
}

/** Appends the page after the cursor `before`. If the list was reloaded during the request, returns it unchanged. */
export function withPage(list: KeyList, before: string, page: KeyList): KeyList {
  if (list.next !== before) return list
  const known = new Set(list.keys.map(({ id }) => id))
  return { keys: [...list.keys, ...page.keys.filter(({ id }) => !known.has(id))], next: page.next }
}

/** `lost`: there was no valid response, and the request was added to `lostSecretsStore`. */
export type SecretOutcome = 'shown' | 'lost'

export function createKeyActions(send: typeof request) {
  const enqueue = createKeyQueue()

  const applyChange = (key: ConsoleKey, sendRequest: () => Promise<ConsoleKey>): Promise<void> =>
    enqueue(key, async () => {
      const changed = await sendRequest().catch((error: unknown) => {
        if (!mayHaveBeenAccepted(error)) throw error
        lostChangesStore.set((count) => count + 1)
        throw new ChangeUnknown(key)
      })
      keysStore.set((list) => withKey(list, changed))
    })

  return {
    /** Rejects if the service refused the request. */
    async create(body: KeyTermsBody): Promise<SecretOutcome> {
      const secret = { name: body.name ?? '' }
      awaitedSecretsStore.set((count) => count + 1)
      try {
        const answer = await send<NewKeyAnswer>('POST', CONSOLE_PATHS.keys, { body })
        const { key, api_key: apiKey } = answer
        if (key === undefined || apiKey === undefined) throw new Error('The response has no key.')
        keysStore.set((list) => withKey(list, key))
        secretsStore.set((secrets) => [...secrets, { ...secret, apiKey }])
        return 'shown'
      } catch (error) {
        if (!mayHaveBeenAccepted(error)) throw error
        lostSecretsStore.set((lost) => [...lost, secret])
        return 'lost'
      } finally {
        awaitedSecretsStore.set((count) => count - 1)
      }
    },
    /** Rejects if the service refused the change. Rejects with `ChangeUnknown` if there was no valid response. */
    change: (key: ConsoleKey, body: KeyTermsBody): Promise<void> =>
      applyChange(key, () => send('PATCH', CONSOLE_PATHS.key, { params: { id: key.id }, body })),
  }
}

/** Returns true if the service may have carried out the request despite the error. */
function mayHaveBeenAccepted(error: unknown): boolean {
  const { status } = error as { readonly status?: number }
  return status === undefined || isOutcomeUnknown(status)
}

/**
 * Runs the changes of a key one after another. Each response contains the whole key, so a late response would overwrite
 * a newer change.
 */
function createKeyQueue() {
  const last = new Map<number, Promise<unknown>>()
  return async <Answer>({ id }: ConsoleKey, act: () => Promise<Answer>): Promise<Answer> => {
    const before = last.get(id) ?? Promise.resolve()
    const turn = before.then(() => {
      if (!sessionStore.get()) throw new Error('Not sent: you are signed out.')
      return act()
    })
    last.set(
      id,
      turn.catch(() => undefined),
    )
    return await turn
  }
}

export const keyActions = createKeyActions(request)

export const readKeys = (before?: string, options: ApiRequest = {}): Promise<KeyList> =>
  request<KeyList>('GET', CONSOLE_PATHS.keys, { ...options, query: { before } })

/** Maximum length of a usable list of choices. An account can have more keys, but most of those are disabled. */
const MAX_CHOICES = 500

/** Reads the newest keys, as choices for the key filters. */
export async function readKeyChoices(signal: AbortSignal): Promise<readonly ConsoleKey[]> {
  const keys: ConsoleKey[] = []
  let next: string | null = null
  do {
    const page = await readKeys(next ?? undefined, { signal })
    keys.push(...page.keys)
    next = page.next
  } while (next != null && keys.length < MAX_CHOICES)
  return keys
}
