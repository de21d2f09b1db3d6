/** `--local`: the whole way from a prompt to a picture, without a key, a network or a set-up. Films: films.system.ts. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createPlace, filesBelow, processesOf, RENDERER, rushes, start } from '../support/binary.js'
import { until } from '../support/until.js'

const FOX = ['run', 'image', '--local', 'a fox']

describe.concurrent('run image --local', () => {
  it('prints the path of a picture of the size that was asked for, and keeps its data to its owner', async () => {
    const place = createPlace()
    const { code, stdout } = await rushes(place, [...FOX, '--aspect-ratio', '16:9'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^run_\w+\.png\n$/)
    expect(filesBelow(place.folder)).toEqual([stdout.trim()])
    const bytes = readFileSync(join(place.folder, stdout.trim()))
    expect(bytes.subarray(0, 8).toString('hex')).toBe('89504e470d0a1a0a')
    expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([1376, 774])

    const state = join(place.home, '.local', 'state', 'rushes')
    const open = '( -type d ! -perm 0700 ) -o ( -name *.db* ! -perm 0600 )'.split(' ')
    expect((await promisify(execFile)('find', [state, ...open])).stdout).toBe('')
    expect(filesBelow(state)).toContain('local/service.db')
  })

  it('leaves a run that nobody waits for in the queue, and later commands do not render it', async () => {
    const place = createPlace()
    const { stdout, stderr } = await rushes(place, [
      '--local',
      'run',
      'image',
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

  it('works twice at once on one state folder, each process with its own run', async () => {
    const place = createPlace()
    const both = await Promise.all([rushes(place, FOX), rushes(place, FOX)])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    const paths = both.map(({ stdout }) => stdout.trim())
    expect(new Set(paths).size).toBe(2)
    expect(filesBelow(place.folder)).toEqual([...paths].sort())
    // Each run is a picture of its own.
    expect(new Set(paths.map((path) => readFileSync(join(place.folder, path), 'latin1'))).size).toBe(2)
  })
})

/** Videos, so that the signal comes while they are rendered. */
describe.concurrent('run video --local', () => {
  it.each<[string, NodeJS.Signals, string[], RegExp]>([
    [
      'run',
      'SIGTERM',
      ['run', 'video', '--local', '-n', '2', 'a boat'],
      /^ {2}Resume with `rushes wait --local run_\w+ run_\w+`\. Stop them with `rushes cancel --local run_\w+ run_\w+`\.$/m,
    ],
    ['batch', 'SIGINT', ['batch', '--local', 'shots.yaml'], /2 runs: 2 queued/],
  ])(
    '%s that is ended by %s leaves its runs in the queue, and no renderer',
    async (_, ending, words, says) => {
      const place = createPlace()
      const rows = [0, 1].map((at) => `  - { name: r${at}, kind: video, prompt: a boat }\n`)
      writeFileSync(join(place.folder, 'shots.yaml'), `runs:\n${rows.join('')}`)
      const command = start(place, words)
      await command.prints('stderr', /processing/)
      command.kill(ending)
      const { signal, stderr } = await command.ended
      expect(signal).toBe(ending)
      expect(stderr).toMatch(says)
      expect((await rushes(place, ['list', '--status', 'queued'])).stdout.split('\n')).toHaveLength(3)
      await until('the end of the renderers', () => processesOf(place, RENDERER).length === 0 || undefined)
    },
  )

  it('that is killed leaves its run in the queue, and no renderer and no file', async () => {
    const place = createPlace()
    const killed = start(place, ['run', 'video', '--local', 'a fox'])
    const [, id = ''] = await killed.prints('stderr', /(run_\w+): processing/)
    await until('a renderer', () => processesOf(place, RENDERER).length > 0 || undefined)
    killed.kill('SIGKILL')
    expect(await killed.ended).toMatchObject({ signal: 'SIGKILL', stdout: '' })
    await until('the end of the renderer', () => processesOf(place, RENDERER).length === 0 || undefined)
    expect(filesBelow(place.folder)).toEqual([])
    expect((await rushes(place, ['status', id, '--local'])).stdout).toBe(`${id}\tqueued\t\n`)
  })
})
