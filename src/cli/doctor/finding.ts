/** The result of one check of `rushes doctor`. A check that throws has failed. */
import { asRushesError, Interruption } from '../../host/interrupts.js'
import { exitCodeOf } from '../process/exit.js'

/** What one check found, or one of several things that it looked at. */
export interface Part {
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped'
  readonly message: string
  /** What the user can do to fix the problem. */
  readonly advice?: string | undefined
  /** Exit code of the command when this is the only failed check. */
  readonly exitCode?: number
}

export interface Finding extends Part {
  readonly check: string
}

export const ok = (message: string, advice?: string): Part => ({ status: 'ok', message, advice })

export const warning = (message: string, advice?: string): Part => ({ status: 'warning', message, advice })

/** Runs the parts of a check. Reports the problems, or else everything that is well. Rejects only after a signal. */
export async function check(
  name: string,
  ...works: readonly (() => Part | readonly Part[] | Promise<Part | readonly Part[]>)[]
): Promise<Finding> {
  const parts = await Promise.all(works.map((work) => attempt(async () => work())))
  const all = parts.flat()
  const problems = all.filter(({ status }) => status !== 'ok')
  const shown = problems.length > 0 ? problems : all
  const failed = problems.filter(({ status }) => status === 'failed')
  return {
    check: name,
    status: failed.length > 0 ? 'failed' : problems.length > 0 ? 'warning' : 'ok',
    message: shown.map(({ message }) => message).join('; '),
    advice: shown.flatMap(({ advice }) => advice ?? []).join('\n') || undefined,
    ...(failed.length > 0 && { exitCode: exitCodeFor(failed) }),
  }
}

async function attempt<Parts>(work: () => Promise<Parts>): Promise<Parts | Part> {
  try {
    return await work()
  } catch (thrown) {
    if (thrown instanceof Interruption) throw thrown
    const { message, hint: advice, exitCode } = asRushesError(thrown)
    return { status: 'failed', message, advice, exitCode }
  }
}

export const exitCodeFor = (parts: readonly Part[]): number =>
  exitCodeOf(parts.flatMap(({ exitCode }) => (exitCode === undefined ? [] : [{ exitCode }])))
