/** The variables of `npm run test:wine`: the command of Wine, `node.exe`, and the folder of the packages for Windows. */
const VARIABLES = ['RUSHES_WINE', 'RUSHES_WINE_NODE', 'RUSHES_WINE_PACKAGES'] as const

export const [WINE = '', NODE = '', PACKAGES = ''] = VARIABLES.map((name) => process.env[name])

export const missingParts = (): readonly string[] => VARIABLES.filter((name) => !process.env[name])
