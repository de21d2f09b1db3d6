/** Whether a key works, and if not, why. Pure. */
import type { ConsoleKey } from '../../protocol/console.js'
import { type KeyState, keyStateOf } from '../../protocol/key-state.js'

export const KEY_STATES: Readonly<
  Record<KeyState, { readonly label: string; readonly tone: 'good' | 'neutral' | 'warn' | 'bad' }>
> = {
  active: { label: 'Active', tone: 'good' },
  disabled: { label: 'Disabled', tone: 'neutral' },
  expired: { label: 'Expired', tone: 'bad' },
  'spend limit reached': { label: 'Spend limit reached', tone: 'warn' },
  'quota used up': { label: 'Quota used up', tone: 'warn' },
}

export const stateOf = (key: ConsoleKey, now: number): KeyState =>
  keyStateOf(
    {
      disabled: key.disabled,
      expiresAtMs: key.expires_at === null ? undefined : Date.parse(key.expires_at),
      spent: key.spent,
      spendLimit: key.spend_limit ?? undefined,
      used: key.used,
      quota: key.quota ?? undefined,
    },
    now,
  )

const SHELL_SAFE = /^[\w@%+=:,./-]+$/
const quoted = (text: string) => (SHELL_SAFE.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** The lines that let `rushes` use the key in a terminal. */
export const exportLines = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .map(([name, value]) => `export ${name}=${quoted(value)}`)
    .join('\n')
