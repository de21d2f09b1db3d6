/**
 * Progress on standard error. A terminal gets a spinner (the only use of ora); elsewhere a line is written when a
 * run's status changes, and one a minute as a sign of life; under `--quiet` and `--json` there is nothing.
 */
import type { Clock, Disarm } from '../../host/clock.js'
import type { Context } from '../context/context.js'
import { sayDuration } from '../flags/duration.js'
import { variable } from '../settings/table.js'
import { signsFor, speaksUtf8 } from './charset.js'
import { type Amount, type Board, signOfLife, sumOf, type UsualTime } from './progress-lines.js'

export interface Progress {
  status(id: string, status: string): void
  /** What is being done beside waiting; undefined clears it. Shown by the spinner alone. */
  activity(text: string | undefined): void
  transfer(id: string, amount: Amount): void
  /** A run exists; what is usual for its model, where that is known. */
  runBegan(model: string | undefined, usual: UsualTime | undefined): void
  /** How long the whole command will take, counted from its beginning; undefined where that is said in another way. */
  expects(ms: number | undefined): void
  /** A run needs no more waiting for; by the name that its status was told under. */
  runEnded(id?: string): void
  end(): void
}

const SIGN_OF_LIFE_MS = 60_000

type Drawing = Pick<Progress, 'end'> & { changed(id?: string): void }

export async function createProgress(ctx: Context, runs: number): Promise<Progress> {
  const statuses = new Map<string, string>()
  const live = new Map<string, string>()
  const amounts = new Map<string, Amount>()
  const usuals = new Map<string | undefined, UsualTime | undefined>()
  let created = 0
  let ended = 0
  let activity: string | undefined
  let expectedMs: number | undefined
  const board = (): Board => ({
    statuses,
    runs,
    ended,
    created,
    activity,
    amount: amounts.size === 0 ? undefined : sumOf(amounts.values()),
    usual: usuals.size === 1 ? [...usuals.values()][0] : undefined,
    expectedMs,
  })
  const drawing = await draw(ctx, board, live)
  return {
    status(id, status) {
      if (statuses.get(id) === status) return
      statuses.set(id, status)
      live.set(id, status)
      drawing.changed(id)
    },
    activity(text) {
      activity = text
      drawing.changed()
    },
    transfer(id, amount) {
      amounts.set(id, amount)
      drawing.changed()
    },
    runBegan(model, usual) {
      created++
      usuals.set(model, usual)
    },
    expects(ms) {
      expectedMs = ms
    },
    runEnded(id) {
      if (id !== undefined) live.delete(id)
      ended++
      drawing.changed()
    },
    end: drawing.end,
  }
}

async function draw(ctx: Context, board: () => Board, live: ReadonlyMap<string, string>): Promise<Drawing> {
  const { out, stderr, env } = ctx
  if (out.mode.quiet || out.mode.json) return { changed() {}, end() {} }
  // A terminal without columns, as in some containers, would have ora clear lines without end.
  const hasWidth = stderr.columns === undefined || stderr.columns > 0
  const terminal = stderr.isTTY && hasWidth && env.TERM !== 'dumb' && variable(env, 'CI') === undefined
  return terminal ? drawSpinner(ctx, board, live) : drawLines(ctx, board)
}

function drawLines({ clock, out }: Context, board: () => Board): Drawing {
  const startedAtMs = clock.monotonic()
  const elapsed = () => clock.monotonic() - startedAtMs
  const end = everyMinute(clock, () => out.note(signOfLife(board(), elapsed())))
  return {
    changed(id) {
      const status = id === undefined ? undefined : board().statuses.get(id)
      if (status !== undefined) out.note(`run ${id}: ${status} (${sayDuration(elapsed())})`)
    },
    end,
  }
}

function everyMinute(clock: Clock, work: () => void): Disarm {
  let disarm: Disarm = () => {}
  const arm = () => {
    disarm = clock.alarm(SIGN_OF_LIFE_MS, () => {
      work()
      arm()
    })
  }
  arm()
  return () => disarm()
}

/** A stream that is a terminal has them; ours is typed by what every stream has. */
const rowsOf = (stream: object): number | undefined => {
  const { rows } = stream as { rows?: unknown }
  return typeof rows === 'number' ? rows : undefined
}

async function drawSpinner(
  { clock, out, stderr, env }: Context,
  board: () => Board,
  live: ReadonlyMap<string, string>,
): Promise<Drawing> {
  const [{ default: ora }, { rowsText, spinnerText }] = await Promise.all([
    import('ora'),
    import('./spinner.js'),
  ])
  const startedAtMs = clock.monotonic()
  const shown = () => spinnerText(board(), clock.monotonic() - startedAtMs, stderr.columns)
  const signs = signsFor(env)
  const spinner = ora({
    stream: stderr as NodeJS.WriteStream,
    // ora would otherwise hold standard input, which may be a pipe with a prompt in it.
    discardStdin: false,
    color: out.style.err.level === 0 ? false : 'cyan',
    ...(speaksUtf8(env) ? {} : { spinner: 'line' }),
    // Of a frame ora asks for this first: the time that passes may leave less room for the rest of the line.
    prefixText() {
      spinner.text = signs(shown().text)
      return signs(rowsText(live, board().runs, { columns: stderr.columns, rows: rowsOf(stderr) }))
    },
    suffixText: () => out.style.err.dim(shown().times),
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
