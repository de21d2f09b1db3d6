/** Writes runs as a command does, into the journal of a state folder: `node journal-writer <folder> <name> <runs>`. */

import { openStateJournal } from '../../src/cli/context/state.js'
import { systemClock } from '../../src/host/clock.js'

const [folder = '', name = '', runs = ''] = process.argv.slice(2)
const journal = openStateJournal({ folder, clock: systemClock, warn() {} })
for (let number = 0; number < Number(runs); number++) {
  const intend = () =>
    journal.intend({
      address: 'https://a.example',
      profile: 'default',
      kind: 'image',
      model: 'acme/still-1',
      input: { prompt: `${name} ${number}` },
    })
  // A journal that was set aside meanwhile has lost the intent, which is then written again.
  if (!journal.accept(intend(), `${name}-${number}`)) journal.accept(intend(), `${name}-${number}`)
}
journal.close()
