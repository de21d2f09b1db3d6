// Emoji that mean a time, a place or weather: 🌙🦊 is a fox at night, not a fox and a moon.

const SIGNS: readonly (readonly [string, string])[] = [
  ['🌑🌒🌓🌔🌕🌖🌗🌘🌙🌚🌛🌜🌝', 'moon'],
  ['⭐🌟🌠🌌✨', 'stars'],
  ['☀🌞🌤', 'sunny'],
  ['🌈', 'rainbow'],
  ['🌅🌄', 'sunrise'],
  ['🌇🌆', 'city sunset'],
  ['🌃', 'city night'],
  ['🏙', 'city'],
  ['🎆🎇', 'fireworks'],
  ['🌊', 'sea'],
  ['🏖', 'beach'],
  ['🏔⛰🗻', 'mountains'],
  ['🏜', 'desert'],
  ['🏞', 'valley'],
  ['❄🌨', 'winter snowing'],
  ['🌧☔', 'rain'],
  ['⛈🌩⚡🌪', 'storm'],
  ['🌫', 'fog'],
  ['☁⛅🌥🌦', 'overcast'],
  ['🍂🍁', 'autumn'],
  ['🌸', 'cherry-blossom'],
]
const SAID = new Map(SIGNS.flatMap(([signs, word]) => [...signs].map((sign) => [sign, word] as const)))
const ANY = new RegExp(`[${[...SAID.keys()].join('')}]\\ufe0f?`, 'gu')

/** The prompt with those emoji as words. */
export function emojiAsWords(prompt: string): string {
  return prompt.replace(ANY, (sign) => ` ${SAID.get(sign.replace('\ufe0f', '')) ?? ''} `)
}
