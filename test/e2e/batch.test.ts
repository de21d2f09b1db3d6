/** The real binary: a batch in CI, killed, gone on with. The long version of the kills is `test/proof/batch.proof.ts`. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sweepBatches } from '../support/batch-sweep.js'
import { bash, createPlace, filesBelow, rushes, serve, start } from '../support/binary.js'

const MANIFEST = `defaults: { kind: image }
runs:
  - { name: fox, prompt: a fox, output: assets/fox.png }
  - { name: hen, prompt: a hen }
`

describe.concurrent('a batch', () => {
  it('is made with --local, without a key, and is then current for a check that has none either', async () => {
    const place = createPlace()
    writeFileSync(join(place.folder, 'shots.yaml'), MANIFEST)
    const { code, stdout, stderr } = await bash(
      place,
      `set -euo pipefail
       rushes batch shots.yaml --check -q >/dev/null && exit 1 || test $? -eq 10
       rushes batch --local shots.yaml -q | sort
       rushes batch shots.yaml --check -q >/dev/null && echo current`,
    )
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'assets/fox.png\nhen.png\ncurrent\n',
      stderr: '',
    })
  })

  it('is one at a time on a manifest', async () => {
    const place = await serve(createPlace())
    writeFileSync(
      join(place.folder, 'shots.yaml'),
      MANIFEST.replace('image }', 'video }').replaceAll('.png', '.mp4'),
    )
    const first = start(place, ['batch', 'shots.yaml'], { stdin: 'ignore' })
    await first.says('stderr', /created/)
    const second = await rushes(place, ['batch', 'shots.yaml'])
    expect(second).toMatchObject({ code: 2, stdout: '' })
    expect(second.stderr).toMatch(/Another batch is working on this manifest/)
    first.kill('SIGINT')
    expect((await first.ended).signal).toBe('SIGINT')
    expect(await rushes(place, ['batch', 'shots.yaml', '-q'])).toMatchObject({ code: 0 })
    expect(existsSync(join(place.folder, 'assets', 'fox.mp4'))).toBe(true)
  })

  it('is one at a time for state folders of their own too: each row is paid once', async () => {
    const place = await serve(createPlace())
    const runs = Array.from({ length: 6 }, (_, row) => ({ name: `row-${row}`, prompt: `number ${row}` }))
    writeFileSync(join(place.folder, 'shots.json'), JSON.stringify({ defaults: { kind: 'image' }, runs }))
    const one = (at: number) =>
      rushes(place.with({ RUSHES_STATE_DIR: join(place.home, `state-${at}`) }), ['batch', 'shots.json'])
    const ended = await Promise.all([1, 2, 3].map(one))
    expect(ended.map(({ code }) => code).sort()).toEqual([0, 2, 2])
    for (const { code, stderr } of ended)
      if (code === 2) expect(stderr).toMatch(/Another batch is working on this manifest \(process \d+ on /)
    const { stdout } = await rushes(place, ['admin', 'account', 'list', '--json', '--data', place.data])
    expect(JSON.parse(stdout)).toMatchObject({ runs: 6 })
    expect(filesBelow(place.folder).filter((file) => file.includes('claim'))).toEqual([])
  })

  it('is killed, and loses nothing', async () => {
    const { wrong } = await sweepBatches([700])
    expect(wrong).toEqual([])
  })
})
