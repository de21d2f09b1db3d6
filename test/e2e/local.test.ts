/** `--local`: the whole way from a prompt to a file, without a key, a network or a set-up. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { boxesIn } from '../preview/support/boxes.js'
import {
  createPlace,
  filesBelow,
  type Place,
  processesOf,
  RENDERER,
  rushes,
  start,
} from '../support/binary.js'
import { until } from '../support/until.js'

const hasFfprobe = (process.env.PATH ?? '').split(delimiter).some((each) => existsSync(join(each, 'ffprobe')))

/** Width and height of a PNG. */
function pngSize(place: Place, path: string): readonly number[] {
  const bytes = readFileSync(join(place.folder, path))
  expect(bytes.subarray(0, 8).toString('hex')).toBe('89504e470d0a1a0a')
  return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)]
}

const idIn = (text: string): string => /run_\w+/.exec(text)?.[0] ?? ''

describe.concurrent('run image --local', () => {
  it('prints the path of a picture of the size that was asked for', async () => {
    const place = createPlace()
    const { code, stdout } = await rushes(place, [
      'run',
      'image',
      '--local',
      '--aspect-ratio',
      '16:9',
      'a fox',
    ])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^run_\w+\.png\n$/)
    expect(pngSize(place, stdout.trim())).toEqual([1376, 774])
    expect(filesBelow(place.folder)).toEqual([stdout.trim()])
  })

  it('knows its runs later, in another process', async () => {
    const place = createPlace()
    const { stdout } = await rushes(place, ['--local', 'run', 'image', 'a fox', '--no-wait'])
    const id = stdout.trim()
    expect(await rushes(place, ['--local', 'status', id])).toMatchObject({
      code: 0,
      stdout: `${id}\tqueued\t\n`,
      stderr: '',
    })
    expect(await rushes(place, ['wait', id, '--local'])).toMatchObject({ code: 0, stdout: `${id}.png\n` })
    expect((await rushes(place, ['status', '--local', '--json', id])).stdout).toMatch(
      /"status":"succeeded".*"urls":\["http/,
    )
  })

  it('leaves a run that nobody waits for in the queue, and later commands do not render it', async () => {
    const place = createPlace()
    const { stdout, stderr } = await rushes(place, [
      'run',
      'image',
      '--local',
      'a fox',
      '--no-wait',
      '-n',
      '3',
    ])
    const ids = stdout.trim().split('\n')
    expect(stderr).toBe('3 runs are queued. Render them with `rushes wait --local --all`.\n')
    expect(await rushes(place, ['run', 'image', '--local', 'a hen'])).toMatchObject({ code: 0 })
    expect((await rushes(place, ['status', ...ids])).stdout).toBe(
      ids.map((id) => `${id}\tqueued\t\n`).join(''),
    )
    // The id is enough: the journal knows where it is.
    const [, wanted = ''] = ids
    expect(await rushes(place, ['wait', wanted])).toMatchObject({ code: 0, stdout: `${wanted}.png\n` })
    const path = join(place.folder, `${wanted}.png`)
    const status = ids.map((id) => (id === wanted ? `${id}\tsucceeded\t${path}\n` : `${id}\tqueued\t\n`))
    expect((await rushes(place, ['status', ...ids])).stdout).toBe(status.join(''))
    // Without the download, the file of the service itself.
    rmSync(path)
    const { files } = JSON.parse((await rushes(place, ['status', wanted, '--json'])).stdout)
    expect(files).toMatchObject([
      { path: expect.stringMatching(/\/local\/outputs\//), content_type: 'image/png' },
    ])
    expect(existsSync(files[0].path)).toBe(true)
  })

  it('is interrupted: the runs are queued, also in the list', async () => {
    const place = createPlace()
    const command = start(place, ['run', 'video', '--local', '-n', '2', 'a boat'])
    await command.says('stderr', /processing/)
    command.kill('SIGINT')
    const { signal, stderr } = await command.ended
    expect(signal).toBe('SIGINT')
    const [, ids = ''] = /^ {2}Resume with `rushes wait --local (run_\w+ run_\w+)`\.$/m.exec(stderr) ?? []
    expect(stderr).toContain('error: Interrupted. 2 runs are queued.\n')
    expect((await rushes(place, ['list', '--status', 'queued'])).stdout.split('\n')).toHaveLength(3)
    expect((await rushes(place, ['status', ...ids.split(' ')])).stdout).toMatch(/^(run_\w+\tqueued\t\n){2}$/)
  })

  it('is interrupted in a batch: the same', async () => {
    const place = createPlace()
    const rows = ['a boat', 'a hen'].map(
      (prompt, at) => `  - { name: r${at}, kind: video, prompt: ${prompt} }\n`,
    )
    writeFileSync(join(place.folder, 'shots.yaml'), `runs:\n${rows.join('')}`)
    const command = start(place, ['batch', '--local', 'shots.yaml'])
    await command.says('stderr', /processing/)
    command.kill('SIGINT')
    const { signal, stderr } = await command.ended
    expect(signal).toBe('SIGINT')
    expect(stderr).toContain('2 runs: 2 queued')
    expect((await rushes(place, ['list', '--status', 'queued'])).stdout.split('\n')).toHaveLength(3)
  })

  it('works twice at once on one state folder, each process with its own runs', async () => {
    const place = createPlace()
    const run = () => rushes(place, ['run', 'image', '--local', '-n', '2', 'a fox'])
    const both = await Promise.all([run(), run()])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    const paths = both.flatMap(({ stdout }) => stdout.trim().split('\n'))
    expect(new Set(paths).size).toBe(4)
    expect(filesBelow(place.folder)).toEqual([...paths].sort())
    // Each run is a picture of its own.
    expect(new Set(paths.map((path) => readFileSync(join(place.folder, path), 'latin1'))).size).toBe(4)
  })

  it('keeps what it makes to its owner', async () => {
    const place = createPlace()
    await rushes(place, ['run', 'image', '--local', 'a fox'])
    const state = join(place.home, '.local', 'state', 'rushes')
    const { stdout } = await promisify(execFile)('find', [
      state,
      '(',
      '-type',
      'd',
      '!',
      '-perm',
      '0700',
      ')',
      '-o',
      '(',
      '-name',
      '*.db*',
      '!',
      '-perm',
      '0600',
      ')',
    ])
    expect(stdout).toBe('')
    expect(filesBelow(state)).toContain('local/service.db')
  })
})

describe.concurrent('run video --local', () => {
  it('makes five seconds of MP4 that plays before it is whole, and --json says what was made', async () => {
    const place = createPlace()
    const { code, stdout, stderr } = await rushes(place, [
      'run',
      'video',
      '--local',
      '--json',
      '--duration',
      '5',
      '-o',
      'films/',
      'a boat',
    ])
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

  it('is killed in the middle: no renderer outlives it, and a wait finishes the run', async () => {
    const place = createPlace()
    // A video, so that the kill comes while its renderer works.
    const killed = start(place, ['run', 'video', '--local', 'a fox'])
    const id = idIn((await killed.says('stderr', /run_\w+: processing/))[0])
    const [renderer] = await until('a renderer', () => {
      const found = processesOf(place, RENDERER)
      return found.length > 0 ? found : undefined
    })
    killed.kill('SIGKILL')
    expect(await killed.ended).toMatchObject({ signal: 'SIGKILL', stdout: '' })
    await until(
      `the end of renderer ${renderer}`,
      () => processesOf(place, RENDERER).length === 0 || undefined,
    )
    expect(filesBelow(place.folder)).toEqual([])
    expect(await rushes(place, ['wait', '--local', id])).toMatchObject({ code: 0, stdout: `${id}.mp4\n` })
    await until('an empty house', () => processesOf(place, /./).length === 0 || undefined)
  })
})
