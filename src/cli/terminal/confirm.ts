/** Asks questions on the terminal. The user answers with a line of standard input. */
import { createInterface } from 'node:readline'
import { raceAbort } from '../../host/abort.js'
import { printable } from '../../protocol/text.js'
import type { Terminal } from './output.js'

type Confirmation = 'yes' | 'no' | 'not asked'

/** Asks one question. Only `y` and `yes` mean yes; the end of the input means no. */
export async function confirm(terminal: Terminal, question: string): Promise<Confirmation> {
  const answer = await askLine(terminal, `${question} [y/N]`)
  if (answer === undefined) return 'not asked'
  return /^y(es)?$/i.test(answer) ? 'yes' : 'no'
}

/**
 * Resolves with the answer, which is empty at the end of the input. Does not ask without a terminal on both sides, or with
 * `--json`, because standard error then contains only JSON: undefined. Rejects with the `Interruption` of a signal.
 */
export async function askLine(
  { out, stderr, stdin, interrupts }: Terminal,
  question: string,
): Promise<string | undefined> {
  if (stderr.isTTY !== true || out.mode.json) return undefined
  const input = stdin()
  if (input.isTTY !== true) return undefined
  // With `terminal: false` the terminal itself edits the line, and Ctrl-C is a signal as everywhere else.
  const lines = createInterface({ input, terminal: false })
  let line: string | undefined
  try {
    stderr.write(`${printable(question)} `)
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
  return line?.trim() ?? ''
}
