/** Results of model servers, as files of a run. */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { saveBase64 } from '../../../src/service/engines/upstream/outputs.js'
import { jobOf } from '../../support/model-servers/engine.js'

const PICTURE = randomBytes(200_000)
const BASE64 = PICTURE.toString('base64')

test.each<[name: string, text: string]>([
  ['plain', BASE64],
  ['with a prefix', `data:image/png;base64,${BASE64}`],
  ['in lines', BASE64.replace(/.{76}/g, '$&\r\n')],
  ['without padding', BASE64.replace(/=+$/, '')],
])('base64 goes decoded into a file, which is hidden until it is published: %s', async (_, text) => {
  const job = jobOf()
  const path = await saveBase64(text, job)
  expect(readFileSync(path).equals(PICTURE)).toBe(true)
  expect(readdirSync(job.folder).filter((name) => !name.startsWith('.'))).toEqual([])
})

test.each<[name: string, text: unknown, expected: string]>([
  ['another character', `${BASE64.slice(0, 150_000)}*${BASE64}`, 'not valid base64'],
  ['padding in the middle', `${BASE64.slice(0, 150_000)}====${BASE64}`, 'not valid base64'],
  ['one character left over', `${BASE64.replace(/=+$/, '').slice(0, 150_000)}A`, 'not valid base64'],
  ['nothing', '', 'an empty result'],
  ['no text', 7, 'no result'],
])('a result that is not whole fails, and leaves no file: %s', async (_, text, expected) => {
  const job = jobOf()
  await expect(saveBase64(text, job)).rejects.toThrow(expected)
  expect(readdirSync(job.folder)).toEqual([])
})
