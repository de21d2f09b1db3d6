/** Checks the config file, the address and the proxy settings without sending anything. */
import { existsSync, statSync } from 'node:fs'
import { isLoopback } from '../../host/http.js'
import { findProxy, noProxy } from '../../host/proxy.js'
import type { Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import type { Env } from '../process/io.js'
import { type Finding, ok, skipped, trouble, warning } from './finding.js'

export async function checkConfig(ctx: Context): Promise<readonly Finding[]> {
  const { path } = ctx.config
  if (!existsSync(path))
    return [ok('config', `no config file at ${path}: the defaults and the environment count`)]
  try {
    const profile = await ctx.profile()
    const mode = statSync(path).mode & 0o777
    const findings: Finding[] =
      process.platform !== 'win32' && (mode & 0o077) !== 0
        ? [
            warning(
              'config',
              `${path} can be read by others (mode ${mode.toString(8)})`,
              `It may hold the API key: chmod 600 ${path}`,
            ),
          ]
        : [ok('config', path)]
    if (Object.keys(profile).length === 0 && ctx.profileName !== 'default')
      findings.push(
        warning(
          'profile',
          `the profile ${ctx.profileName} has no settings`,
          'rushes config list shows a profile.',
        ),
      )
    return findings
  } catch (error) {
    const { message, hint } = asRushesError(error)
    return [trouble('config', message, { advice: hint })]
  }
}

/** Includes the URL when the address is valid. */
export async function checkAddress(ctx: Context): Promise<{ readonly finding: Finding; readonly url?: URL }> {
  try {
    const url = new URL(await ctx.baseUrl())
    return { finding: ok('address', url.href.replace(/\/$/, '')), url }
  } catch (error) {
    const { message, hint, exitCode } = asRushesError(error)
    return { finding: trouble('address', message, { advice: hint, exitCode }) }
  }
}

/** The proxy for requests to this address, shown without its password. */
export function checkProxy(
  url: URL | undefined,
  env: Env,
): { readonly finding: Finding; readonly isUsed: boolean } {
  const unused = (finding: Finding) => ({ finding, isUsed: false })
  if (url === undefined) return unused(skipped('proxy', 'no address'))
  if (isLoopback(url.hostname)) return unused(ok('proxy', 'none: loopback never goes through one'))
  try {
    const proxy = findProxy(env, url.protocol)
    if (proxy === undefined) return unused(ok('proxy', 'none'))
    const except = noProxy(env) === '' ? '' : `, but not for ${noProxy(env)}`
    return { finding: ok('proxy', `${proxy.host}${except}`), isUsed: true }
  } catch (error) {
    const { message, hint, exitCode } = asRushesError(error)
    return unused(trouble('proxy', message, { advice: hint, exitCode }))
  }
}
