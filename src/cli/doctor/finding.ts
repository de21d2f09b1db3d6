/** The result of one check of `rushes doctor`. */
import { EXIT } from '../../errors.js'
import { asRushesError } from '../../host/interrupts.js'
import { exitCodeOf } from '../process/exit.js'

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

export const ok = (check: string, message: string, advice?: string): Finding => ({
  check,
  status: 'ok',
  message,
  advice,
})

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

/** One finding of several: the problems, or everything that is well. */
export function combined(check: string, parts: readonly Finding[]): Finding {
  const problems = parts.filter(({ status }) => status === 'failed' || status === 'warning')
  const shown = problems.length > 0 ? problems : parts
  const isFailed = problems.some(({ status }) => status === 'failed')
  const advice = shown.flatMap((part) => part.advice ?? [])
  return {
    check,
    status: isFailed ? 'failed' : problems.length > 0 ? 'warning' : 'ok',
    message: shown.map(({ message }) => message).join('; '),
    ...(advice.length > 0 && { advice: advice.join('\n') }),
    ...(isFailed && { exitCode: exitCodeFor(problems) }),
  }
}

export const exitCodeFor = (findings: readonly Finding[]): number =>
  exitCodeOf(findings.flatMap(({ exitCode }) => (exitCode === undefined ? [] : [{ exitCode }])))
