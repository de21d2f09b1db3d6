/** The real binary: a batch that is killed, and one on a read-only disk. The long version of the kills is `test/proof/batch.proof.ts`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { sweepBatches } from '../support/batch-sweep.js'
import { canMount } from '../support/containers.js'
import { bash, createInstantEngine, createPlace, quoted, runCli, withStateOfCli } from '../support/index.js'

it('a batch loses no run and pays for none twice when it is killed', async () => {
  const { wrong } = await sweepBatches([450, 700], { outputs: 2, isOneInput: true })
  expect(wrong).toEqual([])
})

it.skipIf(!canMount)(
  'a batch on a read-only disk ends with 0 when everything is up to date, and otherwise with 2 before it sends a run',
  async () => {
    const place = withStateOfCli(createPlace())
    const manifest = join(place.folder, 'shots.yaml')
    writeFileSync(manifest, 'runs: [{ name: hen, kind: image, prompt: a hen }]')
    const created = await runCli(`batch --local ${manifest}`, {
      home: place.home,
      engine: createInstantEngine(),
    })
    expect(created).toMatchObject({ code: 0 })
    const { stdout, stderr } = await bash(
      place,
      `exec unshare -rm bash -c ${quoted(`mount --bind . . && mount -o remount,bind,ro . && cd "$PWD" || exit 99
       rushes batch --local shots.yaml >/dev/null 2>&1; echo "exit $?"
       rushes batch --local shots.yaml --force; echo "force $?"
       ls -A | tr '\\n' ' '`)}`,
    )
    expect(stdout).toBe('exit 0\nforce 2\nhen.png shots.lock.json shots.yaml ')
    expect(stderr.match(/error:/g)).toHaveLength(1)
    expect(stderr).toMatch(
      /error: Cannot write the lock file shots\.lock\.json: read-only file system\. Nothing was sent\./,
    )
  },
)
