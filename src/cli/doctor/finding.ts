/** The result of one check of `rushes doctor`. */
import { EXIT } from '../../errors.js'
import { asRushesError } from '../../host/interrupts.js'

export type CheckStatus = 'ok' | 'warning' | 'failed' | 'skipped'

export interface Finding {
  readonly check: string
  readonly status: CheckStatus
  readonly message: string
  /** What to do. */
  readonly advice?: string | undefined
  /** The exit code of the command if this were the only failed check. */
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

/** A check that threw: the error is the finding. */
export function failedBy(check: string, thrown: unknown): Finding {
  const { message, hint, exitCode } = asRushesError(thrown)
  return failed(check, message, { advice: hint, exitCode })
}

export const skipped = (check: string, why: string): Finding => ({
  check,
  status: 'skipped',
  message: `not checked: ${why}`,
})
