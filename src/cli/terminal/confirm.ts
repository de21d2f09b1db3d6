/** A question on the terminal, answered by a line of standard input. */
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
  const { out, stderr, interrupts } = ctx
  if (stderr.isTTY !== true || out.mode.json) return 'not asked'
  const stdin = ctx.stdin()
  if (stdin.isTTY !== true) return 'not asked'
  // Without `terminal: true` the line is edited by the terminal itself, and Ctrl-C is a signal as everywhere else.
  const lines = createInterface({ input: stdin, terminal: false })
  try {
    stderr.write(`${printable(question)} [y/N] `)
    const answered = new Promise<string | undefined>((resolve) => {
      lines.once('line', resolve)
      lines.once('close', () => resolve(undefined))
    })
    const line = await raceAbort(answered, interrupts.first)
    // After Ctrl-D the cursor is still in the line of the question.
    if (line === undefined) stderr.write('\n')
    return /^y(es)?$/i.test(line?.trim() ?? '') ? 'yes' : 'no'
  } finally {
    lines.close()
  }
}
