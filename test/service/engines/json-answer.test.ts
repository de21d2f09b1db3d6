import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readJsonAnswer } from '../../../src/service/engines/upstream/json-answer.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size)
}

const read = (text: string, size = 65_536, folder = temporaryFolder()) =>
  readJsonAnswer(chunksOf(Buffer.from(text), size), folder)

const PICTURE = randomBytes(200_000)
const SHORT = randomBytes(300)
const BASE64 = PICTURE.toString('base64')

test.each<[name: string, write: (base64: string) => string]>([
  ['plain', (text) => text],
  ['with a prefix', (text) => `data:image\\/png;base64,${text}`],
  ['with escaped slashes', (text) => text.replaceAll('/', '\\/')],
  ['with escapes by number', (text) => text.replaceAll('+', '\\u002B').replaceAll('/', '\\u002f')],
  ['in lines', (text) => text.replace(/.{76}/g, '$&\\r\\n')],
  ['without padding', (text) => text.replace(/=+$/, '')],
])('a long text goes decoded into a file: %s', async (_, write) => {
  const picture = PICTURE.subarray(0, 17_000)
  const text = write(picture.toString('base64'))
  const answer = await read(`{"a":"x\\"{","data":[{"b64_json":"${text}"}],"b":"\\\\"}`)
  const { a, b, data } = answer.value as { a: string; b: string; data: { b64_json: string }[] }
  expect([a, b]).toEqual(['x"{', '\\'])
  const path = await answer.file(data[0]?.b64_json)
  expect(readFileSync(path).equals(picture)).toBe(true)
})

test.each([1, 7, 4_099, 65_536, 10_000_000])('an answer is read in chunks of %d bytes', async (size) => {
  const answer = await read(JSON.stringify({ data: BASE64 }), size)
  const path = await answer.file((answer.value as { data: string }).data)
  expect(readFileSync(path).equals(PICTURE)).toBe(true)
})

test('several pictures, long and short, each get their own file, hidden until they are published', async () => {
  const folder = temporaryFolder()
  const answer = await read(JSON.stringify([BASE64, SHORT.toString('base64'), BASE64]), 1_000, folder)
  const texts = answer.value as readonly string[]
  const paths = await Promise.all(texts.map((text) => answer.file(text)))
  expect(paths.map((path) => readFileSync(path).byteLength)).toEqual([200_000, 300, 200_000])
  expect(readdirSync(folder).filter((name) => !name.startsWith('.'))).toEqual([])
})

test('a long text that is not base64 stays text, as a prompt that comes back', async () => {
  const prompt = 'a fox, "quoted" \\ '.repeat(6_000)
  const answer = await read(JSON.stringify({ prompt, picture: BASE64 }), 5_000)
  const value = answer.value as { prompt: string; picture: string }
  expect(value.prompt).toBe(prompt)
  expect(answer.hasFile(value.prompt)).toBe(false)
  expect(answer.hasFile(value.picture)).toBe(true)
})

test.each<[name: string, text: string]>([
  ['cut in the middle of a picture', `{"data":"${BASE64.slice(0, 100_000)}`],
  ['cut after it', `{"data":"${BASE64}"`],
  ['two values', `{"data":"${BASE64}"}{}`],
  ['empty', ''],
  ['text', 'Internal Server Error'],
])('an answer that is not whole fails: %s', async (_, text) => {
  await expect(read(text)).rejects.toThrow('an incomplete response, or one that is not JSON')
})

test.each<[name: string, text: string, expected: string]>([
  ['another character', `${BASE64.slice(0, 150_000)}%${BASE64}`, 'not valid base64'],
  ['padding in the middle', `${BASE64.slice(0, 150_000)}====${BASE64}`, 'not valid base64'],
  ['one character left over', `${BASE64.replace(/=+$/, '').slice(0, 150_000)}A`, 'not valid base64'],
  ['nothing', '', 'an empty result'],
])('a result that is not whole fails: %s', async (_, text, expected) => {
  const answer = await read(JSON.stringify({ data: text }))
  await expect(answer.file((answer.value as { data: string }).data)).rejects.toThrow(expected)
})

test('an answer without end fails after 64 MiB', async () => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (const chunk = Buffer.alloc(65_536, '['); ; ) yield chunk
  }
  await expect(readJsonAnswer(endless(), temporaryFolder())).rejects.toThrow('more than 64 MiB of JSON')
})

test.each([
  ['deep', `${'['.repeat(1_000)}${']'.repeat(1_000)}`],
  ['many values', `[${'0,'.repeat(100_000)}0]`],
])('an answer with more structure than a result needs fails before it is parsed: %s', async (_, text) => {
  await expect(read(text)).rejects.toThrow('more JSON than a result needs')
})
