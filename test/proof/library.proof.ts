/** `npm install` of the packed tarball, from the registry: the library and the command work in a project of their own. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

it('can be installed, imported and run', { timeout: 300_000 }, () => {
  const project = mkdtempSync(join(tmpdir(), 'rushes-install-'))
  try {
    const run = (command: string, words: readonly string[], cwd = project) =>
      execFileSync(command, [...words], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const [{ filename }] = JSON.parse(
      run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', project], ROOT),
    ) as [{ filename: string }]
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true }))
    run('npm', ['install', '--no-audit', '--no-fund', join(project, filename)])
    const names = run('node', [
      '-e',
      `import('rushes').then((library) => console.log(Object.keys(library).join()))`,
    ])
    expect(names).toContain('createClient')
    const env = `RUSHES_STATE_DIR=${join(project, 'state')}`
    const path = run('env', [env, 'npx', 'rushes', 'run', 'image', '--local', 'a fox', '-o', 'fox.png'])
    expect(path).toBe('fox.png\n')
    expect(readFileSync(join(project, 'fox.png')).subarray(1, 4).toString()).toBe('PNG')
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
})
