/** The real binary: a batch in CI, killed, gone on with. The long version of the kills is `test/proof/batch.proof.ts`. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sweepBatches } from '../support/batch-sweep.js'
import { BINARY, bash, createPlace, filesBelow, quoted, rushes, serve, start } from '../support/binary.js'
import { until } from '../support/until.js'

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
    expect(second.stderr).toMatch(/Another batch is running on this manifest/)
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
      if (code === 2) expect(stderr).toMatch(/Another batch is running on this manifest \(process \d+ on /)
    const { stdout } = await rushes(place, ['admin', 'account', 'list', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ runs: 6 })
    expect(filesBelow(place.folder).filter((file) => file.includes('claim'))).toEqual([])
  })

  it('with --watch creates what an edit changes, until Ctrl-C', async () => {
    const place = createPlace()
    const manifest = join(place.folder, 'shots.yaml')
    writeFileSync(manifest, MANIFEST)
    const watching = start(place, ['batch', '--local', 'shots.yaml', '--watch', '--yes'], { stdin: 'ignore' })
    await watching.says('stderr', /2 runs: 2 created [\s\S]*Watching shots\.yaml for changes/)
    writeFileSync(`${manifest}~`, MANIFEST.replace('a hen }', 'a red hen, output: red.png }'))
    renameSync(`${manifest}~`, manifest)
    await watching.says('stderr', /shots\.yaml changed[\s\S]*Watching/)
    expect(filesBelow(place.folder)).toContain('red.png')
    expect(filesBelow(place.folder).filter((file) => file.includes('claim'))).toEqual([])
    // Another batch may run meanwhile.
    expect(await rushes(place, ['batch', 'shots.yaml', '-q'])).toMatchObject({ code: 0 })
    watching.kill('SIGINT')
    const { signal, stderr } = await watching.ended
    expect(signal).toBe('SIGINT')
    expect(stderr).toMatch(/error: Interrupted\. No run was being created\.\n$/)
  })

  it('is killed, and loses nothing', async () => {
    const { wrong } = await sweepBatches([700])
    expect(wrong).toEqual([])
  })
})

const canMount =
  spawnSync('unshare', ['-rm', 'sh', '-c', 'mount -t tmpfs -o size=64k tmpfs /mnt']).status === 0

describe.skipIf(!canMount)('a batch on a read-only disk', () => {
  it('is done when there is nothing to do, and is exit 2 before anything is sent when there is', async () => {
    const place = createPlace()
    writeFileSync(join(place.folder, 'shots.yaml'), MANIFEST)
    const { stdout, stderr } = await bash(
      place,
      `mkdir disk; exec unshare -rm bash -c ${quoted(`mount -t tmpfs -o size=16m tmpfs disk && cp shots.yaml disk && cd disk || exit 99
       rushes batch --local shots.yaml -q >/dev/null; echo "made $?"
       mount -o remount,ro . || exit 99
       for words in '' --check --dry-run; do rushes batch shots.yaml $words >/dev/null 2>&1; echo "exit $?"; done
       rushes batch --local shots.yaml --force; echo "force $?"
       ls -A | tr '\\n' ' '`)}`,
    )
    expect(stdout).toBe('made 0\nexit 0\nexit 0\nexit 0\nforce 2\nassets hen.png shots.lock.json shots.yaml ')
    expect(stderr.match(/error:/g)).toHaveLength(1)
    expect(stderr).toMatch(
      /error: Cannot write the lock file shots\.lock\.json: read-only file system\. Nothing was sent\./,
    )
  })
})

const hasTmux = spawnSync('tmux', ['-V']).status === 0
const hasScript = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '')

describe.skipIf(!hasTmux)('a terminal that becomes narrower', () => {
  it('shows each run of a batch once', async () => {
    const place = createPlace()
    writeFileSync(join(place.folder, 'slow.sh'), '#!/bin/sh\nsleep 300\n')
    chmodSync(join(place.folder, 'slow.sh'), 0o755)
    const service = await serve(place, ['--engine', 'image=./slow.sh'])
    const rows = Array.from(
      { length: 4 },
      (_, at) => `  - { name: quite-a-long-name-${at}, prompt: ${at} }\n`,
    )
    writeFileSync(join(place.folder, 'shots.yaml'), `defaults: { kind: image }\nruns:\n${rows.join('')}`)
    const tmux = (words: string) =>
      bash(service, `tmux -S ${quoted(join(place.home, 'tmux'))} -f /dev/null ${words}`)
    const screen = async () => (await tmux('capture-pane -p')).stdout
    const named = (text: string) => text.match(/quite-a-long-na/g)?.length
    try {
      const line = `${quoted(process.execPath)} ${quoted(BINARY)} batch shots.yaml`
      await tmux(`new-session -d -x 100 -y 24 ${quoted(line)}`)
      await until('four runs', async () => named(await screen()) === 4)
      for (const columns of [50, 32]) {
        await tmux(`resize-window -x ${columns} -y 24`)
        // Whatever was wrapped is gone: no row is longer than its line, and no id is left of the wide ones.
        await until(`the rows in ${columns} columns`, async () => {
          const text = await screen()
          return named(text) === 4 && /0 of 4 done/.test(text) && !/^\w*\)/m.test(text)
        })
      }
    } finally {
      await tmux('kill-server')
    }
  })
})

describe.skipIf(!hasScript)('a terminal during a 429', () => {
  it('says that it is rate limited, and when it tries again', async () => {
    const service = await serve(createPlace(), ['--fault', 'create:429:RATE_LIMITED:2'])
    const command = `stty cols 80 rows 24; exec ${quoted(process.execPath)} ${quoted(BINARY)} run image fox`
    const { code, stdout } = await start(
      service.with({ TERM: 'xterm-256color' }),
      ['-qec', command, '/dev/null'],
      { command: 'script' },
    ).ended
    expect(code).toBe(0)
    expect(stdout).toMatch(/rate limited, retrying in [12] s/)
  })
})
