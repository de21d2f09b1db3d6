/**
 * Shows progress on standard error. A terminal gets a spinner; only this file uses ora. Other streams get a line when
 * the status of a run changes, and one line per minute during the wait. Writes nothing with `--quiet` or `--json`.
 */

import { every } from '../../host/clock.js'
import { withProgress } from '../../protocol/run-state.js'
import { formatDuration } from '../../protocol/units.js'
import { variable } from '../process/io.js'
import { plural, statusText } from './format.js'
import type { Terminal } from './output.js'
import type { Board, TransferProgress } from './spinner.js'

export interface Progress {
  /** `name`: the name of the run in a manifest. `detail`: how far the run is, for example `40 %`. */
  status(id: string, status: string, name?: string, detail?: string): void
  /** Sets the current activity; undefined clears it. Only the spinner shows it. */
  activity(text: string | undefined): void
  transfer(id: string, amount: TransferProgress): void
  /** Records that a run has ended. `id` and `name`: as they were passed to `status`. */
  runEnded(id?: string, name?: string): void
  end(): void
}

interface ProgressTerminal extends Terminal {
  rateLimitedForMs(): number
}

interface Drawing {
  /** Called when a run has another status. `text`: the run and its status. */
  changed(text: string): void
  end(): void
}

export async function createProgress(ctx: ProgressTerminal, runs: number): Promise<Progress> {
  const board: Board = {
    ...{ runs, statuses: new Map(), live: new Map(), amounts: new Map() },
    ...{ detail: '', ended: 0, activity: undefined },
  }
  const { statuses, live, amounts } = board
  const labelOf = (id: string, name: string | undefined) => (name === undefined ? id : `${name} (${id})`)
  const drawing = await draw(ctx, board)
  return {
    status(id, status, name, detail = '') {
      const label = labelOf(id, name)
      if (runs === 1) board.detail = detail
      live.set(label, withProgress(status, detail))
      if (statuses.get(label) === status) return
      statuses.set(label, status)
      drawing.changed(`${label}: ${status}`)
    },
    activity(text) {
      board.activity = text
    },
    transfer: (id, amount) => void amounts.set(id, amount),
    runEnded(id, name) {
      if (id !== undefined) live.delete(labelOf(id, name))
      board.ended++
    },
    end: () => drawing.end(),
  }
}

async function draw(ctx: ProgressTerminal, board: Board): Promise<Drawing> {
  const { out, stderr, env } = ctx
  if (out.mode.quiet || out.mode.json) return { changed() {}, end() {} }
  // With a width of 0, which some containers report, ora would clear lines in an endless loop.
  const hasWidth = stderr.columns === undefined || stderr.columns > 0
  const terminal = stderr.isTTY && hasWidth && env.TERM !== 'dumb' && variable(env, 'CI') === undefined
  return terminal ? drawSpinner(ctx, board) : drawLines(ctx, board)
}

const STILL_WAITING_INTERVAL_MS = 60_000

function drawLines({ clock, out }: Terminal, board: Board): Drawing {
  const startedAtMs = clock.monotonic()
  const elapsed = () => clock.monotonic() - startedAtMs
  const end = every(clock, STILL_WAITING_INTERVAL_MS, () => out.note(stillWaitingLine(board, elapsed())))
  return { changed: (text) => out.note(`${text} (${formatDuration(elapsed())})`), end }
}

export function stillWaitingLine({ statuses, detail, runs, ended }: Board, elapsedMs: number): string {
  const known = statusText(statuses, runs, detail) || 'no status yet'
  return `still waiting for ${runs - ended} of ${plural(runs, 'run')} (${known}, ${formatDuration(elapsedMs)})`
}

async function drawSpinner(
  { clock, out, stderr, rateLimitedForMs }: ProgressTerminal,
  board: Board,
): Promise<Drawing> {
  const [{ default: ora }, { rowsText, spinnerText }] = await Promise.all([
    import('ora'),
    import('./spinner.js'),
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
      return rowsText(board, stderr)
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
