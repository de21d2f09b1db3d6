/**
 * A process that writes into a journal: `node writer <path> <name> <runs> [stay | race]`. With `stay`, it sends its first
 * create for ever. With `race`, each create has its own currency, in which there is room for one, and its own moment after the
 * time that is read from standard input: two processes try it together.
 */
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { RushesError } from '../../src/errors.js'
import { type IntentRow, Journal } from '../../src/journal/index.js'

const [path = '', name = '', runs = '', stay] = process.argv.slice(2)
const isRace = stay === 'race'
const ROUND_MS = 5
const journal = new Journal({
  folder: dirname(path),
  now: () => Date.now(),
  warn: (message) => writeSync(1, `aside ${/renamed to (.*)\. A new/.exec(message)?.[1] ?? message}\n`),
})

const one = (number: number) => ({ millionths: 1_000_000, currency: `C${number}` })

function intend(number: number): IntentRow | undefined {
  try {
    return journal.intend('required', {
      address: 'https://a.example',
      profile: 'default',
      kind: 'image',
      model: 'acme/still-1',
      input: { prompt: `${name} ${number}` },
      ...(isRace && { estimate: one(number), dayLimit: one(number) }),
    })
  } catch (error) {
    if (isRace && error instanceof RushesError) return undefined
    throw error
  }
}

let startMs = 0
if (isRace) {
  writeSync(1, 'ready\n')
  const [bytes] = await once(process.stdin, 'data')
  startMs = Number(bytes)
  process.stdin.destroy()
}
for (let number = 0; number < Number(runs); number++) {
  while (isRace && Date.now() < startMs + number * ROUND_MS);
  const row = intend(number)
  if (row === undefined) continue
  if (stay === 'stay') {
    writeSync(1, 'intended\n')
    setInterval(() => {}, 1_000)
    await new Promise(() => {})
  }
  journal.accepted(row, { id: `${name}-${number}` })
}
journal.close()
writeSync(1, 'done\n')
