/** Reads an answer with a picture of 45,000 bytes, in one write, and prints how many reached the disk: `answer-process <folder>`. */
import { statSync } from 'node:fs'
import { readJsonAnswer } from '../../../src/service/engines/upstream/json-answer.js'

const [, , folder = ''] = process.argv

async function* answer(): AsyncGenerator<Uint8Array> {
  yield Buffer.from(JSON.stringify({ data: Buffer.alloc(45_000).toString('base64') }))
}

try {
  const read = await readJsonAnswer(answer(), folder)
  const path = await read.file((read.value as { data: string }).data)
  process.stdout.write(`${statSync(path).size}`)
} catch (error) {
  process.stdout.write((error as NodeJS.ErrnoException).code ?? String(error))
}
