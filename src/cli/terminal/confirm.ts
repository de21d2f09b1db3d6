/** Questions on the terminal, each answered by a line of standard input. */
import { createInterface } from 'node:readline'
import { raceAbort } from '../../host/abort.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'

export type Confirmation = 'yes' | 'no' | 'not asked'

/**
 * Anything but `y` or `yes` is no, the end of the input too. Asks nothing without a terminal on both sides, nor under
 * `--json`, where standard error holds nothing but JSON. Rejects with the `Interruption` of a signal.
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

/** For a command that asks again and again. Lines typed while no question is open are dropped. */
export interface Questions {
  ask(question: string): Promise<'yes' | 'no'>
  /** Aborted with `InputEnded` at the end of the input: every further answer is no. */
  readonly ended: AbortSignal
  close(): void
}

/** The end of standard input. */
export class InputEnded extends Error {
  override readonly name = 'InputEnded'
}

/** Undefined without a terminal. */
export function openQuestions(ctx: Context): Questions | undefined {
  const { out, stderr, interrupts } = ctx
  if (stderr.isTTY !== true || out.mode.json) return undefined
  const stdin = ctx.stdin()
  if (stdin.isTTY !== true) return undefined
  // Without `terminal: true` the line is edited by the terminal itself, and Ctrl-C is a signal as everywhere else.
  const lines = createInterface({ input: stdin, terminal: false })
  const ended = new AbortController()
  let answer = (_: string | undefined): void => {}
  lines.on('line', (line) => answer(line))
  lines.once('close', () => {
    ended.abort(new InputEnded())
    answer(undefined)
  })
  return {
    async ask(question) {
      stderr.write(`${printable(question)} [y/N] `)
      const answered = new Promise<string | undefined>((resolve) => {
        answer = resolve
        if (ended.signal.aborted) resolve(undefined)
      })
      let line: string | undefined
      try {
        line = await raceAbort(answered, interrupts.first)
      } finally {
        answer = () => {}
        // After Ctrl-D and Ctrl-C the cursor is still in the line of the question.
        if (line === undefined) stderr.write('\n')
      }
      return /^y(es)?$/i.test(line?.trim() ?? '') ? 'yes' : 'no'
    },
    ended: ended.signal,
    close: () => lines.close(),
  }
}
