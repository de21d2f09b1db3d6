// All figures that can be drawn, the words that select each figure, and its stance. An entry of the list contains the
// name of a figure and further words that select it. A name of several words is selected by these words in a row
// ("polar bear"). Plurals need no entry.
/**
 * `stand`: a whole figure on the ground. `head`: only a head, for which a body is drawn. `bust`: ends at the chest, drawn
 * behind a ledge. `fly`: in the air. `float`: in the water, up to its waterline. `landmark`: buildings, trees, rocks: large,
 * and behind the other actors. `thing`: on a table.
 */
export type Stance = 'stand' | 'head' | 'bust' | 'fly' | 'float' | 'landmark' | 'thing'

const CAST: Readonly<Record<Stance, string>> = {
  stand: `
    tiger:tigress leopard:cheetah,jaguar,panther,lynx horse:stallion,mare,pony,foal,gallop,galloping
    deer:stag,fawn,doe,reindeer,antelope,gazelle moose:elk
    dog:puppy,hound,retriever,corgi,labrador,terrier,dachshund,husky,pup,pups poodle cat:kitten,kitty,tabby black-cat
    rabbit:bunny,hare elephant giraffe zebra ox:bull cow:cattle,calf water-buffalo:buffalo bison ram ewe:sheep,lamb,flock goat
    camel:dromedary donkey:mule llama:alpaca kangaroo hedgehog:porcupine chipmunk:squirrel otter pig:piglet,hog boar
    mouse:mice rat hippopotamus:hippo rhinoceros:rhino crocodile:alligator lizard:gecko,chameleon,iguana turtle:tortoise
    snake:serpent,cobra,python dragon t-rex:dinosaur,tyrannosaurus sauropod:brontosaurus mammoth badger skunk beaver
    gorilla:ape orangutan monkey:chimp,chimpanzee sloth crab lobster snail spider scorpion ant
    lady-beetle:ladybug,ladybird,beetle peacock rooster:hen,chicken turkey dodo owl penguin parrot:macaw
    front-facing-baby-chick:chick teddy-bear
    person-walking:walker,hiker,stranger,traveller,traveler,wanderer,pedestrian,figure,someone,silhouette
    person-running:runner,jogger,sprinter,running woman-dancing:dancer,ballerina,flamenco,dancing man-dancing
    person-biking:cyclist,biker person-in-lotus-position:yoga,meditation,meditating,monk person-fencing:fencer
    person-golfing:golfer horse-racing:jockey,rider,horseman,cowboy,knight skier:skiing snowboarder snowman
    automobile:car,convertible,sedan,coupe taxi:cab bus:coach
    racing-car:race-car,formula,formula-car,racecar,supercar,sports-car sport-utility-vehicle:suv,jeep,van,camper
    pickup-truck:pickup delivery-truck:truck,lorry fire-engine ambulance police-car tractor motorcycle:motorbike
    bicycle:bike,bikes motor-scooter:scooter,vespa,moped locomotive:train,railway high-speed-train:shinkansen tram:streetcar
    auto-rickshaw:rickshaw,tuktuk skateboard:skateboarder person-climbing:climber,mountaineer,climbing
    person-lifting-weights:weightlifter,bodybuilder person-bouncing-ball:basketballer person-cartwheeling:gymnast,acrobat
    articulated-lorry:semi minibus shopping-cart`,
  head: `
    fox:vixen wolf:coyote,wolves bear:grizzly,cub polar-bear lion:lioness panda koala raccoon hamster frog:toad unicorn
    dragon-face robot:android,cyborg,droid
    woman:lady,she,girlfriend,mother,mum,mom,wife,sister,businesswoman,geisha,bride,actress,waitress
    man:gentleman,he,boyfriend,husband,father,dad,brother,guy,businessman,waiter,groom,fisherman,sailor,actor,musician,
      violinist,guitarist,pianist,drummer
    girl:daughter boy:son child:kid,children,toddler baby:infant,newborn
    person:people,couple,friends,crowd,family,patient,passenger,customer,tourist old-woman:grandmother,grandma,granny,elderly
    old-man:grandfather,grandpa`,
  bust: `
    astronaut:cosmonaut,spaceman ninja:samurai,assassin prince:king princess:queen
    person-mage:wizard,witch,sorcerer,magician,mage person-fairy:fairy person-elf:elf person-vampire:vampire
    person-superhero:superhero,hero ghost:spirit alien cook:chef,baker health-worker:doctor,nurse,surgeon,medic,dentist
    mechanic factory-worker:welder office-worker:manager,lawyer,accountant farmer:gardener singer artist:painter pilot
    firefighter detective:spy guard:soldier scientist technologist:programmer,developer,engineer construction-worker:worker
    police-officer:policeman student teacher judge santa-claus:santa person-with-crown person-merpeople:mermaid`,
  fly: `
    eagle:hawk,falcon dove:pigeon bird:birds,sparrow,robin,hummingbird,seagull,gull blackbird:crow,raven,magpie
    phoenix-bird:phoenix bat butterfly:moth honeybee:bee,bumblebee,wasp airplane:plane,jet,aircraft,aeroplane
    small-airplane:biplane,propeller helicopter:drone,chopper rocket:spaceship,spacecraft,starship,shuttle flying-saucer:ufo
    satellite parachute:skydiver,paraglider hot-air-balloon:hot-air-balloons,air-balloon,montgolfier,zeppelin,airship
    balloon:balloons kite red-paper-lantern:lantern,lanterns feather crystal-ball ringed-planet:saturn
    globe-showing-europe-africa:earth,globe`,
  float: `
    sailboat:boat,yacht,sail,sailing,ships paper-boat:origami-boat ship:liner,steamer ferry passenger-ship:cruise
    speedboat:motorboat canoe:kayak,gondola,raft,paddle person-rowing-boat:rowing,rowboat person-swimming:swimmer,swimming
    person-surfing:surfer,surfing whale:orca spouting-whale dolphin:porpoise fish:salmon,goldfish,koi,trout
    tropical-fish:clownfish shark octopus squid jellyfish seal:walrus duck:duckling,mallard swan goose:geese lotus:waterlily
    heron:crane,stork,egret flamingo`,
  landmark: `
    house:home,cottage house-with-garden:villa,farmhouse houses:village hut:cabin,shack,barn,lodge tent:camp,camping
    lighthouse windmill:mill castle:fortress,palace,citadel japanese-castle:pagoda church:chapel,cathedral,monastery mosque
    hindu-temple:temple shinto-shrine:torii,shrine classical-building:parthenon,museum,bank,greek,roman
    tokyo-tower:tower,eiffel statue-of-liberty moai:statue,monument stadium:arena factory:refinery
    office-building:office,skyscraper,skyscrapers hotel hospital school:university,college
    derelict-house:ruin,ruins,haunted-house department-store:mall,supermarket convenience-store:shop,store
    station:railway-station desert-island mount-fuji:fuji synagogue kaaba:mecca ferris-wheel:fair,fairground,carnival
    carousel-horse:carousel roller-coaster circus-tent:circus fountain evergreen-tree:pine,fir,spruce
    deciduous-tree:tree,oak,maple,willow palm-tree:palm,coconut-tree cactus christmas-tree volcano rock:boulder,stone,stones`,
  thing: `
    sunflower rose tulip hibiscus:orchid,lily,poppy hyacinth:lavender maple-leaf four-leaf-clover:clover coral
    bouquet:flower,flowers,wildflowers potted-plant:houseplant,bonsai,plant,succulent seedling:sprout mushroom:fungus
    hot-beverage:coffee,espresso,cappuccino,latte,mug,cup teacup-without-handle:tea,matcha teapot pizza sandwich:panini
    hot-dog taco burrito:kebab cut-of-meat:steak,beef poultry-leg:drumstick,chicken-wings,fried-chicken bacon
    cooking:omelette,fried-egg,breakfast egg dumpling:gyoza,pierogi,ravioli bento-box:bento shrimp:prawn oyster:clam,mussel
    popcorn pretzel bagel baguette-bread:baguette pie:tart custard:pudding,flan candy:sweets,bonbon lollipop butter
    shallow-pan-of-food:paella fork-and-knife-with-plate:dinner,lunch,meal hamburger:burger,cheeseburger
    french-fries:fries,chips sushi steaming-bowl:ramen,noodle,noodles,soup,broth,pho,stew spaghetti:pasta
    pot-of-food:stew,casserole cooked-rice:rice curry-rice:curry green-salad:salad birthday-cake:cake
    shortcake:dessert,cheesecake cupcake:muffin doughnut:donut cookie:biscuit pancakes waffle croissant:pastry,bakery
    bread:loaf,sourdough,toast cheese-wedge:cheese red-apple:apple lemon tangerine:orange,oranges strawberry:berry,berries
    cherries:cherry grapes watermelon pineapple banana peach avocado tomato pear mango:papaya kiwi-fruit:kiwi lime melon
    coconut blueberries:blueberry olive carrot broccoli ear-of-corn:corn,maize potato onion garlic cucumber:zucchini
    eggplant:aubergine bell-pepper:paprika hot-pepper:chili,chilli leafy-green:lettuce,cabbage,vegetables,vegetable
    herb:basil,mint,rosemary,herbs ice-cream:gelato,sundae soft-ice-cream chocolate-bar:chocolate honey-pot:honey
    wine-glass:wine beer-mug:beer,pint,ale cocktail-glass:cocktail,martini,drink tropical-drink
    tumbler-glass:whisky,whiskey,bourbon bottle-with-popping-cork:champagne,bottle beverage-box:juice bubble-tea:boba
    cup-with-straw:soda,lemonade,cola,smoothie glass-of-milk:milk sake clinking-glasses:toasting,prosecco jar:jam
    running-shoe:sneaker,sneakers,trainers,shoe,shoes hiking-boot:boot,boots high-heeled-shoe:heels,stiletto
    handbag:bag,purse,tote backpack:rucksack luggage:suitcase watch:wristwatch,smartwatch
    mobile-phone:phone,smartphone,iphone,app laptop:computer,notebook desktop-computer:monitor camera
    headphone:headphones,earbuds,headset studio-microphone:microphone,podcast radio television:tv guitar violin:cello
    saxophone:jazz trumpet drum:drums banjo:ukulele accordion flute musical-keyboard:piano,synthesizer,keyboard
    lotion-bottle:perfume,perfume-bottle,cream-jar,lotion,cream,cosmetic,cosmetics,skincare,shampoo,serum,fragrance
    lipstick:makeup nail-polish chair:armchair,stool,furniture couch-and-lamp:sofa,couch,lamp bed:bedroom light-bulb:bulb,idea
    door:doorway mirror bathtub:bath soap toothbrush broom basket scissors yarn:wool,knitting bell newspaper scroll:parchment
    world-map:map compass pencil fountain-pen:pen paintbrush love-letter:letter film-projector:projector
    movie-camera:film-camera telephone:landline battery magnet gear:gears,cogs balance-scale:scales,justice
    candle:candles,candlelight books:book,library,novel open-book gem-stone:diamond,jewel,jewellery,jewelry,crystal,gem ring
    crown umbrella:parasol sunglasses t-shirt:shirt jeans:trousers,denim coat:jacket,parka scarf socks:sock
    gloves:glove,mittens kimono necktie:tie top-hat glasses:eyeglasses,spectacles womans-sandal:sandal,sandals
    ballet-shoes:ballet-shoe briefcase:suitcase-bag dress wrapped-gift:gift,present soccer-ball:football,soccer basketball
    tennis baseball volleyball american-football badminton boxing-glove:boxing bowling ice-skate:skates,skate skis
    sled:sleigh,sledge trophy:award red-heart:heart,love mirror-ball:disco,party jack-o-lantern:pumpkin,halloween
    spiral-shell:shell,seashell hourglass-not-done:hourglass alarm-clock:clock key telescope anchor clapper-board:clapperboard
    performing-arts:theatre,theater,mask artist-palette:easel chess-pawn:chess puzzle-piece:puzzle video-game:console,gamepad
    toolbox:tools hammer axe wrench:spanner dagger:sword crossed-swords:swords,duel shield magic-wand:wand skull
    brain:mind,thought dna microscope:laboratory stethoscope syringe:vaccine pill:pills,medicine x-ray
    coin:coins,money,gold-coin package:box,parcel shopping-bags:shopping fire:campfire,flame,flames,bonfire`,
}

export interface Role {
  /** Name of the icon in the icon set. */
  readonly icon: string
  readonly stance: Stance
}

/** All roles with their words, in the order of the list. */
export const ROLES = Object.entries(CAST).flatMap(([stance, list]) =>
  list.split(/(?<![,\s])\s+/).flatMap((entry) => {
    const [icon = '', ...words] = entry.split(/[:,]\s*/)
    return icon === '' ? [] : { icon, stance: stance as Stance, words }
  }),
)

const byWord = new Map<string, Role>()
for (const { icon, stance, words } of ROLES)
  for (const word of [icon, ...words]) if (!byWord.has(word)) byWord.set(word, { icon, stance })

/** Finds a role by one word, or by several words joined with hyphens, in singular or plural. */
export function roleCalled(word: string): { readonly role: Role; readonly plural: boolean } | undefined {
  const name = [word, ...singulars(word)].find((each) => byWord.has(each)) ?? ''
  const role = byWord.get(name)
  return role && { role, plural: name !== word || PLURALS.has(word) }
}

/** Plurals that have a separate entry in the list. */
const PLURALS = new Set(
  `birds balloons hot-air-balloons lanterns wolves mice geese ships people couple friends crowd family flock cattle houses
  village bikes children pups`.split(/\s+/),
)

const singulars = (word: string): readonly string[] =>
  word.length < 4 || !word.endsWith('s')
    ? []
    : [word.slice(0, -1), word.replace(/es$/, ''), word.replace(/ies$/, 'y')]
