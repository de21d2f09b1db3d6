/** Says which runs no row waits for: they may be paid for, and must not be lost without a word. */
import type { LeftRun, Plan } from '../../batch/plan/index.js'
import type { Context } from '../context/context.js'
import { resumeCommand } from '../runs/resume.js'

/** A screen. `--json` names all. */
const MAX_SHOWN = 20

export function warnOfLeftRuns({ out, globals }: Context, { left }: Pick<Plan, 'left'>): void {
  const commandFor = (run: string) => resumeCommand({ globals, delivery: ['-d'] }, 'wait', [run])
  for (const each of left.slice(0, MAX_SHOWN)) out.warn(warningOf(each, commandFor))
  const more = left.length - MAX_SHOWN
  if (more > 0) out.warn(`${more} more runs are not waited for. --json names them all.`)
}

function warningOf({ name, run, key, why }: LeftRun, commandFor: (run: string) => string): string {
  if (run === undefined)
    return `${name}: the outcome of an earlier create${key === undefined ? '' : ` (${key})`} is unknown, and ${WHY[why]}. A run may exist that nothing waits for: check the runs of your account.`
  return `${name}: ${run} has not been downloaded, and ${WHY[why]}. This batch does not wait for it${why === 'waiting' ? ' unless they get the same bytes again' : ''}. To get its result: ${commandFor(run)}`
}

const WHY: Readonly<Record<LeftRun['why'], string>> = {
  changed: 'the row has changed since',
  waiting: 'rows that it uses are created again',
  forced: '--force creates the row again',
  removed: 'the row is not in the manifest any more',
}

/** Every key always there, unknown ones null. */
export const leftRunsJson = ({ left }: Pick<Plan, 'left'>) =>
  left.map(({ name, run, key, why }) => ({ name, run: run ?? null, key: key ?? null, why }))
