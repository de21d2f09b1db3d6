/** What a command shows of its runs while they are carried out: the same for `run`, `wait`, `download` and `batch`. */
import { progressOf } from '../../protocol/parse.js'
import { printable } from '../../protocol/text.js'
import type { Run, RunsSession } from '../../runs/run.js'
import type { RunEvent } from '../../runs/schedule.js'
import type { Context } from '../context/context.js'
import { GRACE_NOTE } from '../terminal/format.js'
import { createProgress, type Progress } from '../terminal/progress.js'

/** Failed status requests in a row after which the user is told: one alone is common. */
const MIN_FAILURES = 2

export class RunsView {
  readonly progress: Progress
  readonly #ctx: Context
  /** Status requests in a row without a valid response. */
  #failures = 0
  #hasWarnedOfRepeatedIds = false
  /** Ids of the runs that the command leaves unfinished. */
  readonly #left: string[] = []

  /** `runs`: number of runs of the command. */
  static async open(ctx: Context, runs: number): Promise<RunsView> {
    return new RunsView(ctx, await createProgress(ctx, runs))
  }

  private constructor(ctx: Context, progress: Progress) {
    this.#ctx = ctx
    this.progress = progress
  }

  see(event: RunEvent): void {
    const { progress } = this
    switch (event.is) {
      case 'unanswered':
        this.#ctx.out.note(GRACE_NOTE)
        break
      case 'created':
        this.#seeCreated(event.run)
        break
      case 'status':
        this.#seeAnswer()
        progress.status(event.run.id, event.state.status, labelOf(event.run), progressOf(event.state))
        break
      case 'error':
        this.#seeFailure(event)
        break
      case 'ended':
        if (event.result.is === 'running' && event.result.why !== 'not finished')
          this.#left.push(event.run.id)
        if (event.result.is !== 'created') progress.runEnded(event.run.known?.id, labelOf(event.run))
    }
  }

  #seeCreated(run: Run): void {
    if (!run.isRepeated || this.#hasWarnedOfRepeatedIds) return
    this.#hasWarnedOfRepeatedIds = true
    this.#ctx.out.warn(
      `The service gave one id to two creates: ${printable(run.id)}. Both may be charged, but there is one run.`,
    )
  }

  #seeFailure({ run, error }: Extract<RunEvent, { is: 'error' }>): void {
    const { out } = this.#ctx
    this.progress.activity('invalid response, trying again')
    out.debug(`${run.id}: ${error.message}`)
    // The service has answered: only the URLs are missing.
    if (run.state?.withoutUrls !== undefined) return
    this.#failures++
    if (this.#failures === MIN_FAILURES) out.note(`${error.message} Still trying.`)
  }

  #seeAnswer(): void {
    this.progress.activity(undefined)
    if (this.#failures >= MIN_FAILURES) this.#ctx.out.note('The service answers again.')
    this.#failures = 0
  }

  /** A local run that the command has left is rendered when somebody waits for it. */
  end({ journal, address }: Pick<RunsSession, 'journal' | 'address'>): void {
    this.progress.end()
    if (this.#ctx.globals.local && this.#left.length > 0) journal?.queued(address, this.#left)
  }
}

const labelOf = ({ row, known }: Run): string | undefined => row.label ?? known?.name
