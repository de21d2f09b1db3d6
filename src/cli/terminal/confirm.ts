/** Asks a question on the terminal. The user answers with a line of standard input. */
import { createInterface } from 'node:readline'
import { raceAbort } from '../../host/abort.js'
import { printable } from '../../protocol/text.js'
import type { Terminal } from './output.js'

type Confirmation = 'yes' | 'no' | 'not asked'

/**
 * Asks one question. Only `y` and `yes` mean yes; the end of the input means no. Does not ask without a terminal on
 * both sides, or with `--json`, because standard error then contains only JSON. Rejects with the `Interruption` of a
 * signal.
 */
export async function confirm(
  { out, stderr, stdin, interrupts }: Terminal,
  question: string,
): Promise<Confirmation> {
  if (stderr.isTTY !== true || out.mode.json) return 'not asked'
  const input = stdin()
  if (input.isTTY !== true) return 'not asked'
  // With `terminal: false` the terminal itself edits the line, and Ctrl-C is a signal as everywhere else.
  const lines = createInterface({ input, terminal: false })
  let line: string | undefined
  try {
    stderr.write(`${printable(question)} [y/N] `)
    const answered = new Promise<string | undefined>((resolve) => {
      lines.once('line', resolve)
      lines.once('close', () => resolve(undefined))
    })
    line = await raceAbort(answered, interrupts.first)
  } finally {
    // After Ctrl-D and Ctrl-C the cursor is still on the line of the question.
    if (line === undefined) stderr.write('\n')
    lines.close()
  }
  return /^y(es)?$/i.test(line?.trim() ?? '') ? 'yes' : 'no'
}
