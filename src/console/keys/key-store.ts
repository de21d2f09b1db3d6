/**
 * The API keys of the user and what changes them. A secret is shown once, so an answer that brings one waits here until the user has
 * copied it, wherever the user is by then.
 */
import type { ConsoleKey, KeyList, KeyTermsBody, NewKeyAnswer } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { isUnknown } from '../runs/create-failure.js'
import { createUserStore, currentUser, type User } from '../session-store.js'

/** Undefined until they were read. */
export const keysStore = createUserStore<KeyList | undefined>(undefined)

/** What was asked of a key that has a new secret. */
export interface SecretRequest {
  readonly name: string
  readonly isRotated: boolean
}

export interface NewSecret extends SecretRequest {
  readonly apiKey: string
}

/** Those that the user has not closed yet, the oldest first. */
export const secretsStore = createUserStore<readonly NewSecret[]>([])

/** How many are being made: leaving the console would lose them. */
export const awaitedSecretsStore = createUserStore(0)

/** Those whose answers were lost: the service may have carried them out. */
export const lostSecretsStore = createUserStore<readonly SecretRequest[]>([])

/** How many changes had answers that were lost: only the list can tell what became of them. */
export const lostChangesStore = createUserStore(0)

/** The service may have carried out a change: the answer was lost. */
export class ChangeUnknown extends Error {
  override readonly name = 'ChangeUnknown'
  constructor(key: ConsoleKey) {
    super(`"${printable(key.name)}" may have been changed: the answer was lost. The list is read again.`)
  }
}

/** The list with a key as the service sent it. A new one comes first, as in the list of the service. */
export function withKey(list: KeyList | undefined, key: ConsoleKey): KeyList {
  const { keys, next } = list ?? { keys: [], next: null }
  const isKnown = keys.some(({ id }) => id === key.id)
  return { keys: isKnown ? keys.map((each) => (each.id === key.id ? key : each)) : [key, ...keys], next }
}

/** The list with its next page, which begins after `before`. A list that was read again meanwhile stays as it is. */
export function withPage(list: KeyList, before: string, page: KeyList): KeyList {
  if (list.next !== before) return list
  const known = new Set(list.keys.map(({ id }) => id))
  return { keys: [...list.keys, ...page.keys.filter(({ id }) => !known.has(id))], next: page.next }
}

/** Requests of which each answers as the service does. */
export interface KeyRequests {
  create(body: KeyTermsBody): Promise<NewKeyAnswer>
  change(id: number, body: KeyTermsBody): Promise<ConsoleKey>
  rotate(id: number): Promise<NewKeyAnswer>
}

/** Whether the answer came: a lost one is in `lostSecretsStore`. */
export type SecretOutcome = 'shown' | 'lost'

export interface KeyActions {
  /** Rejects when the service refused it. */
  create(body: KeyTermsBody): Promise<SecretOutcome>
  /** Rejects when the service refused it, and with `ChangeUnknown`. */
  change(key: ConsoleKey, body: KeyTermsBody): Promise<void>
  /** Rejects when the service refused it. */
  rotate(key: ConsoleKey): Promise<SecretOutcome>
}

export function createKeyActions(requests: KeyRequests): KeyActions {
  const inTurn = createTurns()

  async function takeSecret(asked: SecretRequest, ask: () => Promise<NewKeyAnswer>): Promise<SecretOutcome> {
    const user = currentUser()
    awaitedSecretsStore.set((count) => count + 1, user)
    try {
      const { key, api_key: apiKey } = await ask()
      if (key === undefined || apiKey === undefined) throw new Error('The answer has no key.')
      keysStore.set((list) => withKey(list, key), user)
      secretsStore.set((secrets) => [...secrets, { ...asked, apiKey }], user)
      return 'shown'
    } catch (error) {
      if (!mayBeAccepted(error)) throw error
      lostSecretsStore.set((lost) => [...lost, asked], user)
      return 'lost'
    } finally {
      awaitedSecretsStore.set((count) => count - 1, user)
    }
  }

  return {
    create: (body) => takeSecret({ name: body.name ?? '', isRotated: false }, () => requests.create(body)),
    change: (key, body) => {
      const user = currentUser()
      return inTurn(key, user, async () => {
        const changed = await requests.change(key.id, body).catch((error: unknown) => {
          if (!mayBeAccepted(error)) throw error
          lostChangesStore.set((count) => count + 1, user)
          throw new ChangeUnknown(key)
        })
        keysStore.set((list) => withKey(list, changed), user)
      })
    },
    rotate: (key) =>
      inTurn(key, currentUser(), () =>
        takeSecret({ name: key.name, isRotated: true }, () => requests.rotate(key.id)),
      ),
  }
}

/** Whether the service may have carried it out. An answer that came after another user signed in is not given to anybody. */
function mayBeAccepted(error: unknown): boolean {
  const { status, code = '' } = error as { readonly status?: number; readonly code?: string }
  return status === undefined || code === 'other_user' || isUnknown({ status, code })
}

/** Changes of one key, one after the other: their answers are whole keys, and could come in another order. */
function createTurns() {
  const last = new Map<number, Promise<unknown>>()
  return async <Answer>({ id }: ConsoleKey, user: User, act: () => Promise<Answer>): Promise<Answer> => {
    const before = last.get(id) ?? Promise.resolve()
    const turn = before.then(() => {
      if (currentUser() !== user) throw new Error('Not sent: you were signed out.')
      return act()
    })
    const isOver = turn.then(
      () => undefined,
      () => undefined,
    )
    last.set(id, isOver)
    return await turn
  }
}
