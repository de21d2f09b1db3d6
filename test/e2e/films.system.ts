/** `--local`: a real film at full length. Pictures, and a process that is killed: local.test.ts. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { boxesIn } from '../preview/support/boxes.js'
import { createPlace, rushes } from '../support/binary.js'

const hasFfprobe = (process.env.PATH ?? '').split(delimiter).some((each) => existsSync(join(each, 'ffprobe')))

it.concurrent('run video --local creates an MP4 of five seconds that can be streamed', async () => {
  const place = createPlace()
  const words = ['run', 'video', '--local', '--json', '--duration', '5', '-o', 'films/', 'a boat']
  const { code, stdout, stderr } = await rushes(place, words)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const { id, kind, status, files, error } = JSON.parse(stdout)
  expect({ kind, status, error }).toEqual({ kind: 'video', status: 'succeeded', error: null })
  expect(files).toMatchObject([{ path: join('films', `${id}.mp4`), content_type: 'video/mp4' }])
  const path = join(place.folder, 'films', `${id}.mp4`)
  const bytes = readFileSync(path)
  expect(bytes.length).toBe(files[0].bytes)
  expect(boxesIn(bytes).map(({ name }) => name)).toEqual(['ftyp', 'moov', 'mdat'])
  if (!hasFfprobe) return
  const asked = ['-v', 'error', '-show_entries', 'stream=codec_name,width,height:format=duration']
  const probe = await promisify(execFile)('ffprobe', [...asked, '-of', 'json', path])
  const { streams, format } = JSON.parse(probe.stdout)
  expect(streams).toEqual([{ codec_name: 'h264', width: 1280, height: 720 }])
  expect(Number(format.duration)).toBeCloseTo(5, 1)
})
