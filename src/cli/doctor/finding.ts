/** The result of one check of `rushes doctor`. */
import { EXIT } from '../../errors.js'
import { asRushesError } from '../../host/interrupts.js'

export type CheckStatus = 'ok' | 'warning' | 'failed' | 'skipped'

export interface Finding {
  readonly check: string
  readonly status: CheckStatus
  readonly message: string
  /** What the user can do to fix the problem. */
  readonly advice?: string | undefined
  /** Exit code of the command when this is the only failed check. */
  readonly exitCode?: number
}

export const ok = (check: string, message: string): Finding => ({ check, status: 'ok', message })

export const warning = (check: string, message: string, advice?: string): Finding => ({
  check,
  status: 'warning',
  message,
  advice,
})

export const failed = (
  check: string,
  message: string,
  { advice, exitCode = EXIT.usage }: { readonly advice?: string | undefined; readonly exitCode?: number },
): Finding => ({ check, status: 'failed', message, advice, exitCode })

/** Finding for a check that threw an error. */
export function failedBy(check: string, thrown: unknown): Finding {
  const { message, hint, exitCode } = asRushesError(thrown)
  return failed(check, message, { advice: hint, exitCode })
}

export const skipped = (check: string, reason: string): Finding => ({
  check,
  status: 'skipped',
  message: `not checked: ${reason}`,
})
