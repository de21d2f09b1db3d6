/** Questions on the terminal, each answered by a line of standard input. */
import { createInterface } from 'node:readline'
import { raceAbort } from '../../host/abort.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'

export type Answer = 'yes' | 'no' | 'not asked'

/**
 * Anything but `y` or `yes` is no, the end of the input too. Nothing is asked without a terminal on both sides, nor under
 * `--json`, where standard error holds nothing but JSON. Rejects with the `Interruption` of a signal.
 */
export async function confirm(ctx: Context, question: string): Promise<Answer> {
  const questions = openQuestions(ctx)
  if (questions === undefined) return 'not asked'
  try {
    return await questions.ask(question)
  } finally {
    questions.close()
  }
}

/** For a command that asks again and again. What is typed while no question is open is dropped: it answers none. */
export interface Questions {
  ask(question: string): Promise<'yes' | 'no'>
  /** Whether the input has ended: every further answer is no. */
  hasEnded(): boolean
  close(): void
}

/** Undefined where nobody can answer. */
export function openQuestions(ctx: Context): Questions | undefined {
  const { out, stderr, interrupts } = ctx
  if (stderr.isTTY !== true || out.mode.json) return undefined
  const stdin = ctx.stdin()
  if (stdin.isTTY !== true) return undefined
  // Without `terminal: true` the line is edited by the terminal itself, and Ctrl-C is a signal as everywhere else.
  const lines = createInterface({ input: stdin, terminal: false })
  let hasEnded = false
  let answer = (_: string | undefined): void => {}
  lines.on('line', (line) => answer(line))
  lines.once('close', () => {
    hasEnded = true
    answer(undefined)
  })
  return {
    async ask(question) {
      stderr.write(`${printable(question)} [y/N] `)
      const answered = new Promise<string | undefined>((resolve) => {
        answer = resolve
        if (hasEnded) resolve(undefined)
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
    hasEnded: () => hasEnded,
    close: () => lines.close(),
  }
}
