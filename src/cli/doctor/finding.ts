/** What one check of `rushes doctor` found. */
import { EXIT } from '../../errors.js'

export type Standing = 'ok' | 'warning' | 'trouble' | 'skipped'

export interface Finding {
  readonly check: string
  readonly status: Standing
  readonly message: string
  /** What to do about it, one line. */
  readonly advice?: string | undefined
  /** Of a trouble: what the command would end with if it were the only one. */
  readonly exitCode?: number
}

export const ok = (check: string, message: string): Finding => ({ check, status: 'ok', message })

export const warning = (check: string, message: string, advice?: string): Finding => ({
  check,
  status: 'warning',
  message,
  advice,
})

export const trouble = (
  check: string,
  message: string,
  { advice, exitCode = EXIT.usage }: { readonly advice?: string | undefined; readonly exitCode?: number },
): Finding => ({ check, status: 'trouble', message, advice, exitCode })

export const skipped = (check: string, why: string): Finding => ({
  check,
  status: 'skipped',
  message: `not checked: ${why}`,
})
