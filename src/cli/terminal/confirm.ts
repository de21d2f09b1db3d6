/** Asks questions on the terminal. The user answers each with a line of standard input. */
import { createInterface } from 'node:readline'
import { raceAbort } from '../../host/abort.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'

export type Confirmation = 'yes' | 'no' | 'not asked'

/**
 * Asks one question. Only `y` and `yes` mean yes; the end of the input means no. Does not ask without a terminal on
 * both sides, or with `--json`, because standard error then contains only JSON. Rejects with the `Interruption` of a
 * signal.
 */
export async function confirm(ctx: Context, question: string): Promise<Confirmation> {
  const questions = openQuestions(ctx)
  if (questions === undefined) return 'not asked'
  try {
    return await questions.ask(question)
  } finally {
    questions.close()
  }
}

/** For a command that asks several questions. Lines that the user types while no question is open are dropped. */
export interface Questions {
  ask(question: string): Promise<'yes' | 'no'>
  /** Aborted with `InputEnded` at the end of the input. Every later answer is then no. */
  readonly ended: AbortSignal
  close(): void
}

/** Abort reason at the end of standard input. */
export class InputEnded extends Error {
  override readonly name = 'InputEnded'
}

/** Opens standard input for questions. Returns undefined without a terminal or with `--json`. */
export function openQuestions(ctx: Context): Questions | undefined {
  const { out, stderr, interrupts } = ctx
  if (stderr.isTTY !== true || out.mode.json) return undefined
  const stdin = ctx.stdin()
  if (stdin.isTTY !== true) return undefined
  // With `terminal: false` the terminal itself edits the line, and Ctrl-C is a signal as everywhere else.
  const lines = createInterface({ input: stdin, terminal: false })
  const ended = new AbortController()
  let resolveAnswer = (_: string | undefined): void => {}
  lines.on('line', (line) => resolveAnswer(line))
  lines.once('close', () => {
    ended.abort(new InputEnded())
    resolveAnswer(undefined)
  })
  return {
    async ask(question) {
      stderr.write(`${printable(question)} [y/N] `)
      const answered = new Promise<string | undefined>((resolve) => {
        resolveAnswer = resolve
        if (ended.signal.aborted) resolve(undefined)
      })
      let line: string | undefined
      try {
        line = await raceAbort(answered, interrupts.first)
      } finally {
        resolveAnswer = () => {}
        // After Ctrl-D and Ctrl-C the cursor is still on the line of the question.
        if (line === undefined) stderr.write('\n')
      }
      return /^y(es)?$/i.test(line?.trim() ?? '') ? 'yes' : 'no'
    },
    ended: ended.signal,
    close: () => lines.close(),
  }
}
