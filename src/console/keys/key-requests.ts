/** The requests of the keys. */
import { CONSOLE_PATHS, type ConsoleKey, type KeyList, type NewKeyAnswer } from '../../protocol/console.js'
import { type RequestOptions, request } from '../api.js'
import { createKeyActions } from './key-store.js'

export const keyActions = createKeyActions({
  create: (body) => request<NewKeyAnswer>('POST', CONSOLE_PATHS.keys, { body }),
  change: (id, body) => request<ConsoleKey>('PATCH', CONSOLE_PATHS.key, { params: { id }, body }),
  rotate: (id) => request<NewKeyAnswer>('POST', CONSOLE_PATHS.rotate, { params: { id } }),
})

/** `before`: the cursor of a page; without it the first one. */
export const readKeys = (options: Pick<RequestOptions, 'signal'>, before?: string): Promise<KeyList> =>
  request<KeyList>('GET', CONSOLE_PATHS.keys, {
    ...options,
    ...(before !== undefined && { query: { before } }),
  })

/** As many keys as a list to choose from can have; an account may have more that are disabled. */
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
