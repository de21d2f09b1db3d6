/**
 * A process that writes into a journal: `node writer <path> <name> <runs> [stay]`. With `stay`, it sends its first create for
 * ever. With `DAY_LIMIT`, each create is estimated at 1 USD, and the process ends at the first that passes the limit.
 */
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { RushesError } from '../../src/errors.js'
import { type IntentRow, Journal } from '../../src/journal/index.js'

const [path = '', name = '', runs = '', stay] = process.argv.slice(2)
const { DAY_LIMIT } = process.env
const money = (units: number) => ({ millionths: units * 1_000_000, currency: 'USD' })
const journal = new Journal({
  folder: dirname(path),
  now: () => Date.now(),
  warn: (message) => writeSync(1, `aside ${/renamed to (.*)\. A new/.exec(message)?.[1] ?? message}\n`),
})

function intend(number: number): IntentRow | undefined {
  try {
    return journal.intend('required', {
      address: 'https://a.example',
      profile: 'default',
      kind: 'image',
      model: 'acme/still-1',
      input: { prompt: `${name} ${number}` },
      ...(DAY_LIMIT !== undefined && { estimate: money(1), dayLimit: money(Number(DAY_LIMIT)) }),
    })
  } catch (error) {
    if (DAY_LIMIT !== undefined && error instanceof RushesError) return undefined
    throw error
  }
}

// Two processes that race begin together.
if (DAY_LIMIT !== undefined) {
  writeSync(1, 'ready\n')
  await once(process.stdin, 'data')
  process.stdin.destroy()
}
for (let number = 0; number < Number(runs); number++) {
  const row = intend(number)
  if (row === undefined) break
  if (stay !== undefined) {
    writeSync(1, 'intended\n')
    setInterval(() => {}, 1_000)
    await new Promise(() => {})
  }
  journal.accepted(row, { id: `${name}-${number}` })
}
journal.close()
writeSync(1, 'done\n')
