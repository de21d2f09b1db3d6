import { describe, expect, it } from 'vitest'
import { isLoopback } from '../../src/host/http.js'
import { platformFolders } from '../../src/host/platform-folders.js'

describe('the folders', () => {
  const linux = (config: string, state: string) => ({ config, state })
  it.each([
    ['the defaults', { HOME: '/h' }, linux('/h/.config/rushes', '/h/.local/state/rushes')],
    ['XDG', { HOME: '/h', XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s' }, linux('/c/rushes', '/s/rushes')],
    [
      'XDG that is not absolute',
      { HOME: '/h', XDG_CONFIG_HOME: 'c', XDG_STATE_HOME: './s' },
      linux('/h/.config/rushes', '/h/.local/state/rushes'),
    ],
    [
      'XDG that is empty',
      { HOME: '/h', XDG_CONFIG_HOME: '', XDG_STATE_HOME: '' },
      linux('/h/.config/rushes', '/h/.local/state/rushes'),
    ],
  ])('on Linux: %s', (_, env, folders) => {
    expect(platformFolders('rushes', env, 'linux')).toEqual(folders)
  })

  it('on macOS', () => {
    expect(platformFolders('rushes', { HOME: '/h', XDG_CONFIG_HOME: '/c' }, 'darwin')).toEqual({
      config: '/h/Library/Preferences/rushes',
      state: '/h/Library/Application Support/rushes',
    })
  })

  it('on Windows', () => {
    const roaming = { APPDATA: 'C:\\people\\a b\\AppData\\Roaming', LOCALAPPDATA: 'D:\\Local\\' }
    expect(platformFolders('rushes', roaming, 'win32')).toEqual({
      config: 'C:\\people\\a b\\AppData\\Roaming\\rushes',
      state: 'D:\\Local\\rushes',
    })
    expect(platformFolders('rushes', { USERPROFILE: 'C:\\people\\a' }, 'win32')).toEqual({
      config: 'C:\\people\\a\\AppData\\Roaming\\rushes',
      state: 'C:\\people\\a\\AppData\\Local\\rushes',
    })
    // A share of the network, and the slashes of Git Bash.
    expect(platformFolders('rushes', { APPDATA: '\\\\srv\\home', HOME: 'C:/people/a' }, 'win32')).toEqual({
      config: '\\\\srv\\home\\rushes',
      state: 'C:\\people\\a\\AppData\\Local\\rushes',
    })
  })

  it('without a home: what the system says, and the root where not even that knows one', () => {
    const unknown = () => {
      throw new Error('uv_os_homedir returned ENOENT')
    }
    expect(platformFolders('rushes', {}, 'linux', () => '/h')).toEqual(
      linux('/h/.config/rushes', '/h/.local/state/rushes'),
    )
    expect(platformFolders('rushes', { HOME: '' }, 'linux', unknown)).toEqual(
      linux('/.config/rushes', '/.local/state/rushes'),
    )
    expect(
      platformFolders('rushes', { XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s' }, 'linux', unknown),
    ).toEqual(linux('/c/rushes', '/s/rushes'))
  })
})

describe('loopback', () => {
  it.each([
    ['127.0.0.1', true],
    ['127.255.0.9', true],
    ['localhost', true],
    ['LOCALHOST.', true],
    ['a.localhost', true],
    ['::1', true],
    ['[::1]', true],
    ['0.0.0.0', false],
    ['127.0.0.1.evil.test', false],
    ['localhost.evil.test', false],
    ['notlocalhost', false],
    ['128.0.0.1', false],
    ['', false],
  ])('%s → %s', (host, is) => {
    expect(isLoopback(host)).toBe(is)
  })
})
