/** A process that writes into a journal: `node writer <path> <name> <runs> [stay]`. With `stay`, it sends its first create for ever. */
import { writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { type IntentRow, Journal } from '../../src/journal/index.js'

const [path = '', name = '', runs = '', stay] = process.argv.slice(2)
const journal = new Journal({
  folder: dirname(path),
  now: () => Date.now(),
  warn: (message) => writeSync(1, `aside ${/renamed to (.*)\. A new/.exec(message)?.[1] ?? message}\n`),
})
for (let number = 0; number < Number(runs); number++) {
  const row = journal.intend('required', {
    address: 'https://a.example',
    profile: 'default',
    kind: 'image',
    model: 'acme/still-1',
    input: { prompt: `${name} ${number}` },
  })
  if (stay !== undefined) {
    writeSync(1, 'intended\n')
    setInterval(() => {}, 1_000)
    await new Promise(() => {})
  }
  journal.accepted(row as IntentRow, { id: `${name}-${number}` })
}
journal.close()
writeSync(1, 'done\n')
