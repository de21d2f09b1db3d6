/**
 * What a command shows of its runs while they are carried out: the same for `run`, `wait`, `download` and `batch`. A
 * terminal gets a spinner; only this file uses ora. Other streams get a line when the status of a run changes, and one
 * line per minute during the wait. Progress is not shown with `--quiet` or `--json`.
 */
import { every } from '../../host/clock.js'
import type { Journal } from '../../journal/index.js'
import { progressOf } from '../../protocol/run-state.js'
import { formatBytes, formatDuration } from '../../protocol/units.js'
import type { Run } from '../../runs/run.js'
import type { RunEvent } from '../../runs/schedule.js'
import type { Context } from '../context/context.js'
import { variable } from '../process/io.js'
import { GRACE_NOTE, plural, statusText } from '../terminal/format.js'
import type { Board, TransferProgress } from '../terminal/spinner.js'

/** Failed status requests in a row after which the user is told: one alone is common. */
const MIN_FAILURES = 2

export class RunsView {
  readonly #ctx: Context
  readonly #board: Board
  readonly #drawing: Drawing
  /** Status requests in a row without a valid response. */
  #failures = 0
  #hasWarnedOfRepeatedIds = false
  /** Ids of the runs that the command leaves unfinished. */
  readonly #left: string[] = []

  /** `runs`: number of runs of the command. */
  static async open(ctx: Context, runs: number): Promise<RunsView> {
    const board: Board = {
      runs,
      statuses: new Map(),
      detail: '',
      ended: 0,
      activity: undefined,
    }
    return new RunsView(ctx, board, await draw(ctx, board))
  }

  private constructor(ctx: Context, board: Board, drawing: Drawing) {
    this.#ctx = ctx
    this.#board = board
    this.#drawing = drawing
  }

  see(event: RunEvent): void {
    switch (event.is) {
      case 'unanswered':
        this.#ctx.out.note(GRACE_NOTE)
        break
      case 'created':
        this.#seeCreated(event.run)
        break
      case 'status':
        this.#seeStatus(event)
        break
      case 'error':
        this.#seeFailure(event)
        break
      case 'ended':
        if (event.result.is === 'running' && event.result.why !== 'not finished')
          this.#left.push(event.run.id)
        if (event.result.is === 'created') break
        this.#board.ended++
        this.#board.activity = undefined
    }
  }

  #seeCreated(run: Run): void {
    if (!run.isRepeated || this.#hasWarnedOfRepeatedIds) return
    this.#hasWarnedOfRepeatedIds = true
    this.#ctx.out.warn(
      `The service gave one id to two creates: ${run.id}. Both may be charged, but there is one run.`,
    )
  }

  #seeStatus({ run, state }: Extract<RunEvent, { is: 'status' }>): void {
    const board = this.#board
    // A run whose outputs are not downloaded ends now.
    board.activity =
      state.phase === 'succeeded' && state.withoutUrls === undefined ? 'downloading' : undefined
    if (this.#failures >= MIN_FAILURES) this.#ctx.out.note('The service answers again.')
    this.#failures = 0
    if (board.runs === 1) board.detail = progressOf(state)
    const label = labelOf(run)
    if (board.statuses.get(label) === state.status) return
    board.statuses.set(label, state.status)
    this.#drawing.changed(`${label}: ${state.status}`)
  }

  #seeFailure({ run, error }: Extract<RunEvent, { is: 'error' }>): void {
    const { out } = this.#ctx
    this.#board.activity = 'invalid response, trying again'
    out.debug(`${run.id}: ${error.message}`)
    // The service has answered: only the URLs are missing.
    if (run.state?.withoutUrls !== undefined) return
    this.#failures++
    if (this.#failures === MIN_FAILURES) out.note(`${error.message.replace(/[^.!?]$/, '$&.')} Still trying.`)
  }

  transfer({ receivedBytes, totalBytes }: TransferProgress): void {
    const total = totalBytes === undefined ? '' : ` of ${formatBytes(totalBytes)}`
    this.#board.activity = `downloading ${formatBytes(receivedBytes)}${total}`
  }

  /** A local run that the command has left is rendered when somebody waits for it. */
  end(journal: Journal | undefined, address: string): void {
    this.#drawing.end()
    if (this.#ctx.globals.local && this.#left.length > 0) journal?.queued(address, this.#left)
  }
}

/** The id, after the name that a manifest gives to the run. */
function labelOf({ row, known, id }: Run): string {
  const name = row.label ?? known?.name
  return name === undefined ? id : `${name} (${id})`
}

interface Drawing {
  /** Called when a run has another status. `text`: the run and its status. */
  changed(text: string): void
  end(): void
}

async function draw(ctx: Context, board: Board): Promise<Drawing> {
  const { out, stderr, env } = ctx
  if (out.mode.quiet || out.mode.json) return { changed() {}, end() {} }
  // With a width of 0, which some containers report, ora would clear lines in an endless loop.
  const hasWidth = stderr.columns === undefined || stderr.columns > 0
  const terminal = stderr.isTTY && hasWidth && env.TERM !== 'dumb' && variable(env, 'CI') === undefined
  return terminal ? drawSpinner(ctx, board) : drawLines(ctx, board)
}

const STILL_WAITING_INTERVAL_MS = 60_000

function drawLines({ clock, out }: Context, board: Board): Drawing {
  const startedAtMs = clock.monotonic()
  const elapsed = () => clock.monotonic() - startedAtMs
  const end = every(clock, STILL_WAITING_INTERVAL_MS, () => out.note(stillWaitingLine(board, elapsed())))
  return { changed: (text) => out.note(`${text} (${formatDuration(elapsed())})`), end }
}

export function stillWaitingLine(board: Board, elapsedMs: number): string {
  const { statuses, detail, runs, ended, activity } = board
  const known = [statusText(statuses, runs, detail) || 'no status yet', activity].filter(Boolean).join(', ')
  return `still waiting for ${runs - ended} of ${plural(runs, 'run')} (${known}, ${formatDuration(elapsedMs)})`
}

async function drawSpinner(
  { clock, out, stderr, rateLimitedForMs }: Context,
  board: Board,
): Promise<Drawing> {
  const [{ default: ora }, { spinnerText }] = await Promise.all([
    import('ora'),
    import('../terminal/spinner.js'),
  ])
  const startedAtMs = clock.monotonic()
  const currentText = () => {
    // After a 429, which means that another program uses the same key.
    const heldMs = rateLimitedForMs()
    const activity = heldMs > 0 ? `rate limited, retrying in ${Math.ceil(heldMs / 1_000)} s` : board.activity
    return spinnerText({ ...board, activity }, clock.monotonic() - startedAtMs, stderr.columns)
  }
  const spinner = ora({
    stream: stderr as NodeJS.WriteStream,
    // Otherwise ora would read standard input, which may contain a prompt.
    discardStdin: false,
    color: out.style.err.level === 0 ? false : 'cyan',
    // ora calls this first for each frame, so it also sets the text to fit the current width.
    prefixText() {
      spinner.text = currentText().text
      return ''
    },
    suffixText: () => out.style.err.dim(currentText().time),
  })
  spinner.start()
  out.setAside(() => spinner.clear())
  return {
    changed() {},
    end() {
      out.setAside(() => {})
      spinner.stop()
    },
  }
}
