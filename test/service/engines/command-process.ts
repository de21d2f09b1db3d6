/** A process with a command engine in it, for the test that kills it: `command-process <folder>`. */
import { systemClock } from '../../../src/host/clock.js'
import { createCommandEngine } from '../../../src/service/engines/command/index.js'

const [, , folder = ''] = process.argv

await createCommandEngine({
  command: 'echo $$ > "$RUSHES_OUTPUT_DIR/pid"; sleep 60; :',
  env: process.env,
  clock: systemClock,
}).render({
  kind: 'image',
  input: { prompt: 'a fox' },
  folder,
  references: [],
  signal: new AbortController().signal,
})
