"""Unicode tables of the leak scan, made by scripts/make-unicode-tables; do not edit.

Source: confusables.txt 13.0.0, DerivedCoreProperties.txt 15.0.0,
decimal digits 14.0.0.
Copyright Unicode, Inc.; the Unicode licence (https://www.unicode.org/license.txt) applies to the
data.

Attributes:
    IGNORABLE: Default_Ignorable_Code_Point, as the inside of a regular-expression class.
    DIGIT_ZEROS: The zero of every decimal digit set but ASCII's; its nine other digits follow it.
    PROTOTYPES: UTS #39 confusables whose prototype without marks is ASCII letters and digits, by
        prototype. Left out: what NFKC and case folding equate anyway, and digits.
"""

IGNORABLE = (
    "\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
DIGIT_ZEROS = (
    "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0d66\u0de6\u0e50"
    "\u0ed0\u0f20\u1040\u1090\u17e0\u1810\u1946\u19d0\u1a80\u1a90\u1b50\u1bb0\u1c40\u1c50"
    "\ua620\ua8d0\ua900\ua9d0\ua9f0\uaa50\uabf0\uff10\U000104a0\U00010d30\U00011066"
    "\U000110f0\U00011136\U000111d0\U000112f0\U00011450\U000114d0\U00011650\U000116c0"
    "\U00011730\U000118e0\U00011950\U00011c50\U00011d50\U00011da0\U00016a60\U00016ac0"
    "\U00016b50\U0001d7ce\U0001d7d8\U0001d7e2\U0001d7ec\U0001d7f6\U0001e140\U0001e2f0"
    "\U0001e950\U0001fbf0"
)
PROTOTYPES = {
    "2": "\u01a7\u01bb\u03e8\u14bf\ua644\ua6ef\ua75a",
    "3": "\u01b7\u021c\u0417\u0498\u04e0\u2ccc\ua76a\ua7ab\U000118ca\U00016f3b\U0001d206",
    "4": "\u13ce\U000118af",
    "5": "\u01bc\U000118bb",
    "6": "\u0431\u13ee\u2cd2\U000118d5",
    "7": "\U000104d2\U000118c6\U0001d212",
    "8": "\u0222\u0223\u0b03\U0001031a\U0001e8cb",
    "9": "\u2cca\ua76e\U000118ac\U000118cc\U000118d6",
    "A": (
        "\u0391\u0410\u13aa\u15c5\ua4ee\U000102a0\U00016f40\U0001d6a8\U0001d6e2\U0001d71c"
        "\U0001d756\U0001d790"
    ),
    "AA": "\ua732",
    "AE": "\u00c6\u04d4",
    "AO": "\ua734",
    "AR": "\U0001f707",
    "AU": "\ua736",
    "AV": "\ua738\ua73a",
    "AY": "\ua73c",
    "B": (
        "\u0392\u0412\u13f4\u15f7\ua4d0\ua7b4\U00010282\U000102a1\U00010301\U0001d6a9"
        "\U0001d6e3\U0001d71d\U0001d757\U0001d791"
    ),
    "C": (
        "\u03f9\u0421\u04aa\u13df\u20a1\u2ca4\ua4da\U000102a2\U00010302\U00010415\U0001051c"
        "\U000118f2\U0001f16e\U0001f74c"
    ),
    "D": "\u00d0\u0110\u0189\u13a0\u15de\u15ea\ua4d3",
    "E": (
        "\u0246\u0395\u0415\u13ac\u22ff\u2d39\ua4f0\U00010286\U000118a6\U000118ae\U0001d6ac"
        "\U0001d6e6\U0001d720\U0001d75a\U0001d794"
    ),
    "F": (
        "\u0191\u03dc\u15b4\ua4dd\ua798\U00010287\U000102a5\U00010525\U000118a2\U000118c2"
        "\U0001d213\U0001d7ca"
    ),
    "G": "\u01e4\u050c\u13c0\u13f3\ua4d6",
    "H": (
        "\u0126\u0397\u041d\u04a2\u04c7\u04c9\u13bb\u157c\u2c67\u2c8e\ua4e7\U000102cf"
        "\U0001d6ae\U0001d6e8\U0001d722\U0001d75c\U0001d796"
    ),
    "J": "\u0248\u037f\u0408\u13ab\u148d\ua4d9\ua7b2",
    "K": (
        "\u039a\u041a\u049a\u049e\u13e6\u16d5\u20ad\u2c69\u2c94\ua4d7\ua740\U00010518"
        "\U0001d6b1\U0001d6eb\U0001d725\U0001d75f\U0001d799"
    ),
    "L": (
        "\u0141\u13de\u14aa\u2cd0\ua4e1\U0001041b\U00010526\U000118a3\U000118b2\U00016f16\U0001d22a"
    ),
    "M": (
        "\u039c\u03fa\u041c\u04cd\u13b7\u15f0\u16d6\u2c98\ua4df\U000102b0\U00010311\U0001d6b3"
        "\U0001d6ed\U0001d727\U0001d761\U0001d79b"
    ),
    "MB": "\U0001f76b",
    "N": (
        "\u019d\u039d\u2c9a\ua4e0\U0001018e\U00010513\U0001d6b4\U0001d6ee\U0001d728\U0001d762"
        "\U0001d79c"
    ),
    "O": (
        "\u00d8\u019f\u01fe\u0398\u039f\u03b8\u03d1\u03f4\u041e\u0472\u04e8\u0555\u0b20\u12d0"
        "\u13be\u13eb\u2296\u229d\u236c\u2c9e\u2d31\u2d41\u2d54\u3007\ua4f3\ua74a\U00010292"
        "\U000102ab\U00010404\U000104c2\U00010516\U000118b5\U0001d21a\U0001d6af\U0001d6b6"
        "\U0001d6b9\U0001d6c9\U0001d6dd\U0001d6e9\U0001d6f0\U0001d6f3\U0001d703\U0001d717"
        "\U0001d723\U0001d72a\U0001d72d\U0001d73d\U0001d751\U0001d75d\U0001d764\U0001d767"
        "\U0001d777\U0001d78b\U0001d797\U0001d79e\U0001d7a1\U0001d7b1\U0001d7c5\U0001f714"
    ),
    "OE": "\u0152",
    "OO": "\ua698\ua74e",
    "P": (
        "\u03a1\u0420\u13e2\u146d\u2ca2\ua4d1\U00010295\U0001d6b8\U0001d6f2\U0001d72c"
        "\U0001d766\U0001d7a0"
    ),
    "Q": "\u2d55",
    "QE": "\U0001f700",
    "R": "\u01a6\u13a1\u13d2\u1587\ua4e3\U000104b4\U00016f35\U0001d216",
    "S": "\u0405\u054f\u13d5\u13da\ua4e2\U00010296\U00010420\U00016f3a",
    "T": (
        "\u0166\u01ae\u023e\u03a4\u0422\u04ac\u13a2\u20ae\u22a4\u2361\u27d9\u2ca6\ua4d4"
        "\U00010297\U000102b1\U00010315\U000118bc\U00016f0a\U0001d6bb\U0001d6f5\U0001d72f"
        "\U0001d769\U0001d7a3\U0001f768"
    ),
    "T3": "\ua728",
    "U": "\u0244\u054d\u1200\u13cc\u144c\u222a\u22c3\ua4f4\U000104ce\U000118b8\U00016f42",
    "V": (
        "\u0474\u13d9\u142f\u2d38\ua4e6\ua6df\U00010197\U0001051d\U000118a0\U00016f08"
        "\U0001d20d\U0001f708"
    ),
    "VB": "\U0001f76c",
    "Vl": "\u2165",
    "Vll": "\u2166",
    "Vlll": "\u2167",
    "W": "\u051c\u13b3\u13d4\u20a9\ua4ea\U000118ef",
    "X": (
        "\u03a7\u0425\u04b2\u166d\u16b7\u2573\u2cac\u2d5d\ua4eb\ua7b3\U00010196\U00010290"
        "\U000102b4\U00010317\U00010322\U00010527\U000118ec\U0001d6be\U0001d6f8\U0001d732"
        "\U0001d76c\U0001d7a6"
    ),
    "Xl": "\u216a",
    "Xll": "\u216b",
    "Y": (
        "\u00a5\u024e\u03a5\u03d2\u0423\u04ae\u04b0\u13a9\u13bd\u2ca8\ua4ec\U000102b2"
        "\U000118a4\U00016f43\U0001d6bc\U0001d6f6\U0001d730\U0001d76a\U0001d7a4"
    ),
    "Z": (
        "\u01b5\u0224\u0396\u13c3\ua4dc\U000102f5\U000118a9\U0001d6ad\U0001d6e7\U0001d721"
        "\U0001d75b\U0001d795"
    ),
    "a": ("\u0251\u03b1\u0430\u1e9a\u2376\u237a\U0001d6c2\U0001d6fc\U0001d736\U0001d770\U0001d7aa"),
    "aa": "\ua733",
    "ae": "\u00e6\u04d5",
    "ao": "\ua735",
    "au": "\ua737",
    "av": "\ua739\ua73b",
    "ay": "\ua73d",
    "b": (
        "\u0180\u0182\u0183\u0184\u0253\u0411\u042c\u0462\u0463\u048c\u048d\u13cf\u1472\u1473\u15af"
    ),
    "bl": "\u042b",
    "c": "\u00a2\u023c\u03f2\u0441\u04ab\u1d04\u2ca5\uabaf\U0001043d",
    "d": "\u0111\u018c\u0256\u0257\u0501\u13e7\u146f\u20ab\ua4d2",
    "dz": "\u02a3",
    "e": "\u0247\u0435\u04bd\u04bf\u212e\uab32",
    "f": "\u017f\u0192\u0584\u1d6e\u1e9d\ua799\uab35",
    "g": "\u018d\u01e5\u0260\u0261\u0581\u1d83",
    "h": "\u0127\u0266\u045b\u04bb\u0570\u13c2\u13f2\u210f\ua695",
    "i": (
        "\u0131\u0268\u0269\u026a\u02db\u037a\u03b9\u0456\u04cf\u13a5\u1d7b\u1d7c\u1fbe\u2373"
        "\u2378\ua647\uab75\U000118c3\U0001d6a4\U0001d6ca\U0001d704\U0001d73e\U0001d778"
        "\U0001d7b2"
    ),
    "j": "\u0249\u03f3\u0458",
    "k": "\u0199",
    "l": (
        "\u0142\u0196\u0197\u019a\u01c0\u026b\u026d\u0399\u0406\u04c0\u05c0\u05d5\u05df\u0625"
        "\u0627\u0673\u07ca\u16c1\u2110\u2111\u2160\u2223\u23fd\u2c92\u2d4f\ua4f2\ufd3c\ufd3d"
        "\ufe87\ufe88\ufe8d\ufe8e\uff29\uffe8\U0001028a\U00010309\U00010320\U00016f28"
        "\U0001d408\U0001d43c\U0001d470\U0001d4d8\U0001d540\U0001d574\U0001d5a8\U0001d5dc"
        "\U0001d610\U0001d644\U0001d678\U0001d6b0\U0001d6ea\U0001d724\U0001d75e\U0001d798"
        "\U0001e8c7\U0001ee00\U0001ee80"
    ),
    "lJ": "\u0132",
    "lO": "\u042e",
    "lV": "\u2163",
    "lX": "\u2168",
    "ll": "\u01c1\u05f0\u2016\u2161\u2225\U00010199",
    "llS": "\U00010198",
    "lll": "\u2162",
    "ls": "\u02aa",
    "lt": "\u20b6",
    "lz": "\u02ab",
    "n": ("\u019e\u0273\u03b7\u0578\u057c\u1d70\U0001d6c8\U0001d702\U0001d73c\U0001d776\U0001d7b0"),
    "o": (
        "\u00f8\u0275\u03bf\u03c3\u043e\u0473\u04e9\u0585\u05e1\u0647\u06be\u06c1\u06d5\u06ff"
        "\u0c02\u0c82\u0d02\u0d20\u0d82\u1010\u101d\u10ff\u1d0f\u1d11\u2c9f\ua74b\uab3d\uab3e"
        "\uab74\uab8e\uabbb\ufba6\ufba7\ufba8\ufba9\ufbaa\ufbab\ufbac\ufbad\ufcd9\ufee9\ufeea"
        "\ufeeb\ufeec\U0001042c\U000104ea\U000118c8\U000118d7\U0001d6d0\U0001d6d4\U0001d70a"
        "\U0001d70e\U0001d744\U0001d748\U0001d77e\U0001d782\U0001d7b8\U0001d7bc\U0001ee24"
        "\U0001ee64\U0001ee84"
    ),
    "oe": "\u0153",
    "oo": "\u221e\ua699\ua74f",
    "p": (
        "\u01a5\u03c1\u03f1\u0440\u1d7d\u2374\u2ca3\U0001d6d2\U0001d6e0\U0001d70c\U0001d71a"
        "\U0001d746\U0001d754\U0001d780\U0001d78e\U0001d7ba\U0001d7c8"
    ),
    "q": "\u02a0\u051b\u0563\u0566",
    "r": "\u024d\u027c\u027d\u0433\u0493\u1d26\u1d72\u2c85\uab47\uab48\uab81",
    "rn": (
        "\u0271\u1d6f\u20a5\u217f\U00011700\U0001d426\U0001d45a\U0001d48e\U0001d4c2\U0001d4f6"
        "\U0001d52a\U0001d55e\U0001d592\U0001d5c6\U0001d5fa\U0001d62e\U0001d662\U0001d696"
    ),
    "s": "\u01bd\u0282\u0455\u1d74\ua731\uabaa\U00010448\U000118c1",
    "sss": "\U0001f75c",
    "t": "\u0167\u01ad\u1d75",
    "tf": "\ua777",
    "ts": "\u02a6",
    "u": (
        "\u028b\u03c5\u057d\u1d1c\u1d7e\ua79f\uab4e\uab52\uab9c\U000104f6\U000118d8\U0001d6d6"
        "\U0001d710\U0001d74a\U0001d784\U0001d7be"
    ),
    "ue": "\u1d6b",
    "uo": "\uab63",
    "v": (
        "\u03bd\u0475\u05d8\u1d20\u2228\u22c1\uaba9\U00011706\U000118c0\U0001d6ce\U0001d708"
        "\U0001d742\U0001d77c\U0001d7b6"
    ),
    "w": (
        "\u026f\u0461\u047d\u051d\u0561\u1d21\ua761\uab83\U000114c5\U0001170a\U0001170e\U0001170f"
    ),
    "x": "\u00d7\u0445\u1541\u157d\u166e\u292b\u292c\u2a2f\u2a30",
    "y": (
        "\u01b4\u024f\u0263\u028f\u03b3\u0443\u04af\u04b1\u10e7\u1d8c\u1eff\u213d\uab5a"
        "\U000118dc\U0001d6c4\U0001d6fe\U0001d738\U0001d772\U0001d7ac"
    ),
    "z": "\u01b6\u0225\u0290\u1d22\u1d76\uab93\U000118c4",
}
